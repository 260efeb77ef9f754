import Logging

/// Tells of messages that are dropped, as a ``DoublingCounter`` does.
final class DropLog: Sendable {
    /// How much of a text from the network is logged, in characters.
    static let maximumLength = 200

    private let logger: Logger
    private let counter = DoublingCounter()

    init(logger: Logger) {
        self.logger = logger
    }

    /// How many messages were dropped.
    var dropped: Int { counter.value }

    /// Counts a message of which the binding has told.
    func count() { _ = counter.increment() }

    func note(_ what: String, topic: String, error: PayloadError? = nil) {
        guard let count = counter.increment() else { return }
        var metadata: Logger.Metadata = ["topic": "\(Self.short(topic))", "dropped so far": "\(count)"]
        if let error { metadata["error"] = "\(Self.short(error.description))" }
        logger.notice("dropped \(what)", metadata: metadata)
    }

    static func short(_ text: String) -> String {
        let head = text.prefix(maximumLength)
        return head.endIndex == text.endIndex ? text : head + "…"
    }
}
