import Logging
import Synchronization

/// Logs dropped messages, at counts 1, 2, 4, 8…
final class DropLog: Sendable {
    /// Maximum number of logged characters of a text from the network.
    static let maximumLength = 200

    /// Maximum number of senders whose events are counted by sender. Those of further senders count only in the sum: an
    /// agent chooses its id, so it could use any number of them.
    static let maximumSenders = 100

    /// Maximum length of such an id, in bytes.
    private static let maximumSenderLength = 128

    private let logger: Logger
    private let counter = DoublingCounter()
    private let senders = Mutex<[CoatyUUID: Int]>([:])

    init(logger: Logger) {
        self.logger = logger
    }

    /// Number of dropped messages.
    var dropped: Int { counter.value }

    /// Number of messages that could not be read, by sender; of at most ``maximumSenders`` senders.
    var invalidBySender: [CoatyUUID: Int] { senders.withLock(\.self) }

    /// Counts a message that could not be read, also by sender, and logs it as ``note(_:label:error:)`` does.
    func note(invalid reason: String, _ sender: CoatyUUID?, _ label: String, _ error: PayloadError) {
        if let sender, sender.string.utf8.count <= Self.maximumSenderLength {
            senders.withLock { senders in
                guard senders[sender] != nil || senders.count < Self.maximumSenders else { return }
                senders[sender, default: 0] += 1
            }
        }
        note(reason, label: label, error: error)
    }

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
