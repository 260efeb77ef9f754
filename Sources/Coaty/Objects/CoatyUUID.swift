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
        // Foundation's UUID opens /dev/urandom each time, which takes 4 times as long.
        var random = SystemRandomNumberGenerator()
        let high: UInt64 = random.next() & ~0xF000 | 0x4000
        let low: UInt64 = random.next() & ~0 >> 2 | 1 << 63
        string = Self.text(high, low)
    }

    private static func text(_ high: UInt64, _ low: UInt64) -> String {
        String(unsafeUninitializedCapacity: 36) { text in
            let digits: StaticString = "0123456789abcdef"
            var place = 0
            for index in 0..<32 {
                if index == 8 || index == 12 || index == 16 || index == 20 {
                    text[place] = UInt8(ascii: "-")
                    place += 1
                }
                let half = index < 16 ? high : low
                text[place] = digits.utf8Start[Int(half >> (60 - 4 * UInt64(index & 15)) & 15)]
                place += 1
            }
            return place
        }
    }

    /// Creates a UUID from a text; nil if the text is not a UUID.
    public init?(uuidString: String) {
        guard let uuid = UUID(uuidString: uuidString) else { return nil }
        string = uuid.uuidString.lowercased()
    }

    /// Returns whether a text is a UUID: 8-4-4-4-12 hexadecimal digits. Foundation's parser uses sscanf(3), which is
    /// slow and accepts signs and spaces.
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

    /// Creates an id from a string from the network, which need not be a UUID: for bindings.
    public init(wire string: String) {
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
