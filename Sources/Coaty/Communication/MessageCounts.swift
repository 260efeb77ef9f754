import Synchronization

/// Counts the messages of broker sessions. Messages of closed sessions stay counted.
package final class MessageCounts: Sendable {
    private let receivedMessages = Atomic(0)
    private let publishedMessages = Atomic(0)

    package init() {}

    /// Number of messages that were received, dropped ones included.
    package var received: Int { receivedMessages.load(ordering: .relaxed) }

    /// Number of publications that were written to the connections.
    package var published: Int { publishedMessages.load(ordering: .relaxed) }

    func countReceived() { receivedMessages.add(1, ordering: .relaxed) }

    func countPublished() { publishedMessages.add(1, ordering: .relaxed) }
}
