import Access
import Base
package import Feeds
package import ProblemDetails
import Synchronization

/// A subscription of a client: the feed delivers to a slot of the client's outbound queue until it ends.
package final class SubscriptionActivity: Activity {
    /// What the client uses for a subscription that has not started. Then they belong to its slot.
    struct Holdings: Sendable {
        let places: [any AnyObject & Sendable]
        let charge: any AnyObject & Sendable
    }

    private struct State {
        var holdings: Holdings?
        /// The part of the events that the client may see; nil for all of them.
        var view: AccessView?
        /// The problem for which the subscription must not start.
        var problem: Problem?
        var slot: ClientSubscription?
        /// Leaves the feed.
        var leave: (@Sendable () -> Void)?
        var isDone = false
    }

    package let outcome: ActivityOutcome
    private let observe: Observe
    private let account: ClientAccount
    private let feeds: FeedHub
    private let client: GateClient
    /// Taken before the lock of the outbound queue.
    private let state: Mutex<State>

    init(
        _ observe: Observe,
        _ view: AccessView?,
        _ account: ClientAccount,
        _ holdings: Holdings,
        in feeds: FeedHub,
        for client: GateClient,
        _ outcome: ActivityOutcome
    ) {
        state = Mutex(State(holdings: holdings, view: view))
        self.observe = observe
        self.account = account
        self.feeds = feeds
        self.client = client
        self.outcome = outcome
    }

    deinit { client.remove(self) }

    /// Opens a slot of an outbound queue, and starts the delivery of events to it. Call it only once.
    ///
    /// - Parameter id: the client's id; nil on a connection with a single subscription.
    package func start(_ options: SubscriptionOptions, id: String? = nil, on outbound: OutboundQueue) {
        let observation = observe.observation
        let (slot, holdings, problem) = state.withLock { state -> (ClientSubscription, Holdings?, Problem?) in
            let slot = outbound.open(id: id, options: options, wanted: observation, view: state.view, outcome: outcome)
            guard !state.isDone, let holdings = state.holdings.take() else { return (slot, nil, state.problem) }
            // Before the slot can be refused, which frees its places.
            slot.occupy(holdings.places)
            slot.hold([holdings.charge])
            slot.attach(self)
            state.slot = slot
            return (slot, holdings, nil)
        }
        if let problem { slot.refuse(problem) }
        guard holdings != nil else { return }
        slot.charge(account.work)
        let leave = feeds.subscribe(slot, to: observation, by: account.client)
        let isOver = state.withLock { state in
            if !state.isDone { state.leave = leave }
            return state.isDone
        }
        if isOver { leave() }
    }

    // MARK: - Activity

    package var operation: any ControlledOperation { observe }

    package func apply(_ permit: Permit) {
        state.withLock { state in
            guard state.view != permit.view else { return }
            state.view = permit.view
            state.slot?.see(permit.view)
        }
    }

    package func refuse(_ problem: Problem) {
        guard let ended = close(problem) else { return }
        ended.slot?.refuse(problem)
        ended.leave?()
    }

    package func end() { close()?.leave?() }

    /// Ends the activity.
    ///
    /// - Parameter problem: the problem for which it must not start.
    /// - Returns: its state before; nil if it had ended.
    private func close(_ problem: Problem? = nil) -> State? {
        let closed = state.withLock { state -> State? in
            guard !state.isDone else { return nil }
            let closed = state
            state = State(problem: problem, isDone: true)
            return closed
        }
        if closed != nil { client.remove(self) }
        return closed
    }
}
