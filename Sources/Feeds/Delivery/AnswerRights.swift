import Base
package import Coaty
import DequeModule
import Synchronization

/// The requests that were delivered to a client and that it may answer.
///
/// Each connection of an anonymous client has separate rights. The connections of a token share their rights, so that a
/// client may reconnect between a request and its answer. Its lock is a leaf: nothing else is locked while it is held.
package final class AnswerRights: Sendable {
    private struct Right {
        var answers: Int
        let deadline: ContinuousClock.Instant

        var isValid: Bool { answers > 0 && .now < deadline }
    }

    private struct State {
        /// By the correlation id, which may be long.
        var rights: [TextKey: Right] = [:]
        /// The keys of `rights` in the order of delivery. May contain used-up ones.
        var order: Deque<TextKey> = []
    }

    /// The time in which a request can be answered. A request does not contain the time for which its sender waits.
    private let window: Duration
    private let limit: Int
    /// Maximum number of answers to a Discover event: an agent answers once for each of its objects. Other requests are
    /// answered once.
    private let discoverAnswers: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - limit: the maximum number of requests; the oldest are forgotten first.
    ///   - discoverAnswers: the maximum number of answers to a Discover event.
    package init(window: Duration, limit: Int, discoverAnswers: Int = Limits().discoverAnswers) {
        self.window = window
        self.limit = limit
        self.discoverAnswers = discoverAnswers
    }

    /// Records that a request was delivered. A later delivery of the same request gives no further right.
    func insert(_ request: DeliveredRequest) {
        let key = TextKey(request.correlationId.string)
        state.withLock { state in
            guard state.rights[key] == nil else { return }
            // Starts when the request was observed: a replayed request must not be answered again or later.
            let deadline = request.observed + window
            guard .now < deadline else { return }
            state.rights[key] = Right(
                answers: request.isDiscover ? discoverAnswers : 1,
                deadline: deadline
            )
            state.order.append(key)
            while let oldest = state.order.first,
                state.order.count > limit || state.rights[oldest].map({ $0.deadline <= .now }) ?? true
            {
                state.order.removeFirst()
                state.rights[oldest] = nil
            }
        }
    }

    /// Whether no request can be answered now.
    package var isEmpty: Bool { state.withLock { !$0.rights.values.contains(where: \.isValid) } }

    /// Returns whether a request can be answered now.
    package func contains(_ id: CoatyUUID) -> Bool {
        let key = TextKey(id.string)
        return state.withLock { $0.rights[key]?.isValid ?? false }
    }

    /// Uses the right to one answer.
    ///
    /// - Returns: false if there is none.
    package func take(_ id: CoatyUUID) -> Bool {
        let key = TextKey(id.string)
        return state.withLock { state in
            guard state.rights[key]?.isValid ?? false else { return false }
            state.rights[key]?.answers -= 1
            return true
        }
    }

    /// Gives back a right whose answer could not be published.
    package func giveBack(_ id: CoatyUUID) {
        let key = TextKey(id.string)
        state.withLock { $0.rights[key]?.answers += 1 }
    }
}

/// A request event in a subscription.
struct DeliveredRequest: Sendable {
    let correlationId: CoatyUUID
    let isDiscover: Bool
    var observed = ContinuousClock.now
}
