import Foundation

/// An identifier of an object, an event source or a request.
///
/// What Coaty makes itself is a version 4 UUID in lower case. What comes from the network is an opaque string: agents in
/// the field use ids that are no UUIDs.
public struct CoatyUUID: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The id as it stands on the wire.
    public let string: String

    /// A fresh version 4 UUID.
    public init() {
        string = UUID().uuidString.lowercased()
    }

    /// The UUID with a spelling; nil where the text is no UUID.
    public init?(uuidString: String) {
        guard let uuid = UUID(uuidString: uuidString) else { return nil }
        string = uuid.uuidString.lowercased()
    }

    /// An id that came from the network, whatever it is.
    package init(wire string: String) {
        self.string = string
    }

    /// Returns whether the bytes are the same.
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

    /// The id as it stands on the wire.
    public var description: String { string }
}
