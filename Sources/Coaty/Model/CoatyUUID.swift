import Foundation

/// An identifier of an object, an event source or a request.
///
/// Coaty creates version 4 UUIDs in lower case. An id from the network is an opaque string: existing agents also use
/// ids that are not UUIDs.
public struct CoatyUUID: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The id as on the wire.
    public let string: String

    /// Creates a new version 4 UUID.
    public init() {
        string = UUID().uuidString.lowercased()
    }

    /// Creates a UUID from a text; nil if the text is not a UUID.
    public init?(uuidString: String) {
        guard let uuid = UUID(uuidString: uuidString) else { return nil }
        string = uuid.uuidString.lowercased()
    }

    /// Creates an id from any string from the network.
    package init(wire string: String) {
        self.string = string
    }

    /// Returns whether the bytes are equal.
    public static func == (left: CoatyUUID, right: CoatyUUID) -> Bool {
        WireName(left.string) == WireName(right.string)
    }

    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) {
        WireName(string).hash(into: &hasher)
    }

    /// Decodes any string.
    public init(from decoder: any Decoder) throws {
        string = try decoder.singleValueContainer().decode(String.self)
    }

    /// Encodes the id as a string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(string)
    }

    /// The id as on the wire.
    public var description: String { string }
}
