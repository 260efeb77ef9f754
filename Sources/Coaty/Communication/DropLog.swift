import Logging
import Synchronization

/// Tells of messages that are dropped: of the 1st, 2nd, 4th, 8th…, so that a sender can't fill the log.
final class DropLog: Sendable {
    /// How much of a text from the network is logged, in characters.
    static let maximumLength = 200

    private let logger: Logger
    private let count = Atomic(0)

    init(logger: Logger) {
        self.logger = logger
    }

    func note(_ what: String, topic: String, error: PayloadError? = nil) {
        let count = count.add(1, ordering: .relaxed).newValue
        guard count & (count - 1) == 0 else { return }
        var metadata: Logger.Metadata = ["topic": "\(Self.short(topic))", "dropped so far": "\(count)"]
        if let error { metadata["error"] = "\(Self.short(error.description))" }
        logger.notice("dropped \(what)", metadata: metadata)
    }

    static func short(_ text: String) -> String {
        let head = text.prefix(maximumLength)
        return head.endIndex == text.endIndex ? text : head + "…"
    }
}
