/// The property that a sensor observes.
public struct ObservedProperty: Codable, Sendable, Hashable {
    /// A name for people, not empty.
    public var name: String
    /// A URI that defines the property.
    public var definition: String
    /// A text for people.
    public var description: String

    /// Creates a property.
    public init(name: String, definition: String, description: String) {
        self.name = name
        self.definition = definition
        self.description = description
    }
}
