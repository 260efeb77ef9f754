/// The properties that all objects have.
public struct ObjectCore: Codable, Sendable, Hashable {
    /// The core type.
    public internal(set) var coreType: CoreType
    /// The object type.
    public internal(set) var objectType: String
    /// Identifies the object in the entire network.
    public var objectId: CoatyUUID
    /// A name for people.
    public var name: String
    /// Identifies the object in a system outside Coaty.
    public var externalId: String?
    /// The object that this one belongs to.
    public var parentObjectId: CoatyUUID?
    /// The Location object of this object's place.
    public var locationId: CoatyUUID?
    /// Whether the object is no longer in use.
    public var isDeactivated: Bool?

    static let propertyNames = Set(PropertyReader.properties(of: Self.self).map(\.name))
}
