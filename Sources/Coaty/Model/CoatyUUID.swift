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

    /// Returns whether a text is a UUID: 8-4-4-4-12 hexadecimal digits. Foundation's parser uses sscanf(3), which is slow
    /// and accepts signs and spaces.
    package static func isUUID(_ text: String) -> Bool {
        let text = text.utf8
        guard text.count == 36 else { return false }
        for (index, byte) in text.enumerated() {
            switch (index, byte) {
            case (8, UInt8(ascii: "-")), (13, UInt8(ascii: "-")), (18, UInt8(ascii: "-")), (23, UInt8(ascii: "-")):
                continue
            case (8, _), (13, _), (18, _), (23, _): return false
            case (_, UInt8(ascii: "0")...UInt8(ascii: "9")), (_, UInt8(ascii: "a")...UInt8(ascii: "f")),
                (_, UInt8(ascii: "A")...UInt8(ascii: "F")):
                continue
            default: return false
            }
        }
        return true
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
