import Logging

/// Logs dropped messages, at counts 1, 2, 4, 8…
final class DropLog: Sendable {
    /// Maximum number of logged characters of a text from the network.
    static let maximumLength = 200

    private let logger: Logger
    private let counter = DoublingCounter()

    init(logger: Logger) {
        self.logger = logger
    }

    /// Number of dropped messages.
    var dropped: Int { counter.value }

    /// Counts a message and logs it if its count is one of those that are logged.
    ///
    /// - Parameter label: the binding's name for the message's origin.
    func note(_ reason: String, label: String, error: PayloadError? = nil) {
        guard let count = counter.increment() else { return }
        var metadata: Logger.Metadata = ["source": "\(Self.short(label))", "dropped so far": "\(count)"]
        if let error { metadata["error"] = "\(Self.short(error.description))" }
        logger.notice("dropped \(reason)", metadata: metadata)
    }

    /// Logs that the broker may have dropped messages. Callers limit how often.
    func noteCongestion() {
        logger.warning("the broker may have dropped messages, because they were not read in time")
    }

    static func short(_ text: String) -> String {
        let head = text.prefix(maximumLength)
        return head.endIndex == text.endIndex ? text : head + "…"
    }
}
