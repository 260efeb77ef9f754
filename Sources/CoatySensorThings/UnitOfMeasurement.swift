/// The unit of a sensor's results, in the terms of the Unified Code for Units of Measure. If results have no unit, as
/// with true and false, all parts are nil.
public struct UnitOfMeasurement: Codable, Sendable, Hashable {
    /// The full name, such as "Degree Celsius".
    public var name: String?
    /// The symbol, such as "degC".
    public var symbol: String?
    /// A URI that defines the unit.
    public var definition: String?

    /// Creates a unit.
    public init(name: String? = nil, symbol: String? = nil, definition: String? = nil) {
        self.name = name
        self.symbol = symbol
        self.definition = definition
    }
}
