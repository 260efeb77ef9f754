/// Names a property of an object, or one nested in it.
///
/// Stands as a dotted path (`"context.floor"`) or, where a name holds a dot itself, as an array of names
/// (`["labels", "com.example.floor"]`), and is sent as it was given. In an array, `length` is the number of elements and a
/// number is an index. The empty array is the object itself.
public struct ObjectFilterProperty: Sendable, Hashable {
    /// The names from the outside in.
    public let names: [String]
    /// Whether the property was given as an array of names.
    public let isArray: Bool

    /// A property in dot notation.
    public init(_ objectFilterProperty: String) {
        // By bytes: a name may begin with a mark that Swift would take for a part of the dot before it.
        names = objectFilterProperty.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
        isArray = false
    }

    /// A property in array notation.
    public init(_ objectFilterProperties: [String]) {
        names = objectFilterProperties
        isArray = true
    }

    /// Reads a dotted path or an array of names.
    ///
    /// - Throws: ``PayloadError`` with the place in the view's document.
    package init(_ view: JSONView, mayBeEmpty: Bool = false) throws(PayloadError) {
        if let path = view.string {
            guard mayBeEmpty || !path.isEmpty else { throw .invalid(view, "must not be empty") }
            self.init(path)
        } else {
            guard view.kind == .array else { throw .invalid(view, "must be a string or an array of strings") }
            var names: [String] = []
            for element in view.elements {
                guard let name = element.string else { throw .invalid(element, "must be a string") }
                names.append(name)
            }
            self.init(names)
        }
    }

    var isEmptyPath: Bool { !isArray && names == [""] }

    var json: AnyCodable {
        isArray ? .array(names.map(AnyCodable.string)) : .string(names.joined(separator: "."))
    }
}

extension ObjectFilterProperty: ExpressibleByStringLiteral, ExpressibleByArrayLiteral {
    /// A property in dot notation.
    public init(stringLiteral path: String) { self.init(path) }

    /// A property in array notation.
    public init(arrayLiteral names: String...) { self.init(names) }
}

extension ObjectFilterProperty: Codable {
    /// Decodes a string or an array of strings.
    public init(from decoder: any Decoder) throws {
        self = try decoder.decodeChecked { view throws(PayloadError) in try Self(view) }
    }

    /// Encodes the property as it was given.
    public func encode(to encoder: any Encoder) throws {
        try json.encode(to: encoder)
    }
}

/// A property that results are ordered by, `[property, "Asc" | "Desc"]` in JSON.
public struct OrderByProperty: Sendable, Hashable {
    /// The property whose values are compared.
    public var objectFilterProperties: ObjectFilterProperty
    /// Which end comes first.
    public var sortingOrder: SortingOrder

    /// Orders by a property.
    public init(properties: ObjectFilterProperty, sortingOrder: SortingOrder) {
        objectFilterProperties = properties
        self.sortingOrder = sortingOrder
    }

    /// Reads `[property, "Asc" | "Desc"]`.
    ///
    /// - Throws: ``PayloadError`` with the place in the view's document.
    package init(_ view: JSONView) throws(PayloadError) {
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

/// Which end of an ordering comes first. Cases as on the wire.
public enum SortingOrder: String, Codable, Sendable, CaseIterable {
    case Asc, Desc
}
