/// A property that results are ordered by, `[property, "Asc" | "Desc"]` in JSON.
public struct OrderByProperty: Sendable, Hashable {
    /// The property whose values are compared.
    public var objectFilterProperties: ObjectFilterProperty
    /// The sorting order.
    public var sortingOrder: SortingOrder

    /// Creates an ordering by a property.
    public init(properties: ObjectFilterProperty, sortingOrder: SortingOrder) {
        objectFilterProperties = properties
        self.sortingOrder = sortingOrder
    }

    /// Decodes `[property, "Asc" | "Desc"]`.
    ///
    /// - Throws: ``PayloadError`` with the place in the view's document.
    init(_ view: JSONView) throws(PayloadError) {
        let parts = Array(view.elements)
        guard parts.count == 2 else { throw .invalid(view, "must be [property, \"Asc\" or \"Desc\"]") }
        guard let order = parts[1].string.flatMap(SortingOrder.init(rawValue:)) else {
            throw .invalid(parts[1], "must be \"Asc\" or \"Desc\"")
        }
        self.init(properties: try ObjectFilterProperty(parts[0], mayBeEmpty: true), sortingOrder: order)
    }
}

extension OrderByProperty: Codable {
    /// Decodes `[property, "Asc" | "Desc"]`.
    public init(from decoder: any Decoder) throws {
        self = try decoder.decodeChecked { view throws(PayloadError) in try Self(view) }
    }

    /// Encodes `[property, "Asc" | "Desc"]`.
    public func encode(to encoder: any Encoder) throws {
        try AnyCodable.array([objectFilterProperties.json, .string(sortingOrder.rawValue)]).encode(to: encoder)
    }
}

/// The sorting order. Cases as on the wire.
public enum SortingOrder: String, Codable, Sendable, CaseIterable {
    case Asc, Desc
}
