import Base
package import Coaty
import Coordination
import Synchronization

/// Counts the broker sessions that observe traffic. A session counts until its thread has ended.
///
/// A thread blocked in the resolver or in connect(2) can outlive its subscriptions by minutes.
package final class TrafficSessions: Component {
    /// Maximum time that ``stop()`` waits for sessions to close. Longer than an orderly close, which the binding limits
    /// to 2 s.
    static let leaveTimeout = Duration.milliseconds(600)
    private static let pollInterval = Duration.milliseconds(20)

    /// Counts one session until it is released.
    final class Place: Sendable {
        private let sessions: TrafficSessions

        fileprivate init(_ sessions: TrafficSessions) { self.sessions = sessions }

        deinit { sessions.current.subtract(1, ordering: .relaxed) }
    }

    /// Maximum number of sessions, including those that are closing. At the maximum, no further set of events can be
    /// observed.
    package let maximum: Int
    /// The messages of all sessions.
    package let messageCounts: MessageCounts
    private let current = Atomic(0)

    /// - Parameters:
    ///   - feeds: maximum number of feeds in use that have their own session.
    ///   - messageCounts: counts the messages of the sessions.
    package init(feeds: Int, messageCounts: MessageCounts = MessageCounts()) {
        maximum = feeds + FeedHub.maximumUnusedTrafficFeeds
        self.messageCounts = messageCounts
    }

    var count: Int { current.load(ordering: .relaxed) }

    /// Whether there may be another session.
    var hasRoom: Bool { count < maximum }

    /// Adds a session to the count. Callers check ``hasRoom`` first, under the same lock.
    func take() -> Place {
        current.add(1, ordering: .relaxed)
        return Place(self)
    }

    func start() async {}

    /// Waits until the sessions have closed, for at most ``leaveTimeout``. They close when the gateway's main session
    /// ends.
    func stop() async {
        let deadline = ContinuousClock.now + Self.leaveTimeout
        while count > 0, .now < deadline { try? await Task.sleep(for: Self.pollInterval) }
    }
}
