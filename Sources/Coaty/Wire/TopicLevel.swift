/// A level of a topic, or a part of one, compared byte by byte as MQTT does: Swift's strings are equal where they look equal.
public struct TopicLevel: Hashable, Sendable {
    /// The text.
    public let text: String

    /// Takes a text.
    public init(_ text: String) {
        self.text = text
    }

    /// Whether the bytes are the same.
    public static func == (left: TopicLevel, right: TopicLevel) -> Bool {
        left.text.utf8.elementsEqual(right.text.utf8)
    }

    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
