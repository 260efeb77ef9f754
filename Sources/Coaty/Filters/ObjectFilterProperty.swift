/// The name of a property of an object, or of a nested property.
///
/// It is a dotted path (`"context.floor"`) or, if a name contains a dot, an array of names (`["labels",
/// "com.example.floor"]`), and is sent in the given form. In a JSON array, `length` is the number of elements and a
/// number is an index. The empty array of names is the object itself.
public struct ObjectFilterProperty: Sendable, Hashable {
    /// The names from the outermost to the innermost.
    public let names: [String]
    /// Whether the property was given as an array of names.
    public let isArray: Bool

    /// Creates a property in dot notation.
    public init(_ objectFilterProperty: String) {
        // Splits bytes: a name may begin with a combining mark, which Swift would combine with the dot before it.
        names = objectFilterProperty.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
        isArray = false
    }

    /// Creates a property in array notation.
    public init(_ objectFilterProperties: [String]) {
        names = objectFilterProperties
        isArray = true
    }

    /// Decodes a dotted path or an array of names.
    ///
    /// - Throws: ``PayloadError`` with the place in the view's document.
    public init(_ view: JSONView, mayBeEmpty: Bool = false) throws(PayloadError) {
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
    /// Creates a property in dot notation.
    public init(stringLiteral path: String) { self.init(path) }

    /// Creates a property in array notation.
    public init(arrayLiteral names: String...) { self.init(names) }
}

extension ObjectFilterProperty: Codable {
    /// Decodes a string or an array of strings.
    public init(from decoder: any Decoder) throws {
        self = try decoder.decodeChecked { view throws(PayloadError) in try Self(view) }
    }

    /// Encodes the property in the given notation.
    public func encode(to encoder: any Encoder) throws {
        try json.encode(to: encoder)
    }
}
