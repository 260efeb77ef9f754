import Access
import Base
import ProblemDetails
import Synchronization

/// A subscription of a client: the feed delivers to a slot of the client's outbound queue until it ends.
final class SubscriptionActivity: Activity {
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

    let outcome: ActivityOutcome
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

    var observation: Observation { observe.observation }
    /// The part of the events that the client may see; nil for all of them.
    var view: AccessView? { state.withLock(\.view) }

    /// Starts the delivery of events to a slot that was opened for this activity. Call it only once.
    func start(_ slot: ClientSubscription) {
        let (holdings, problem, isDone) = state.withLock { state -> (Holdings?, Problem?, Bool) in
            guard !state.isDone else { return (nil, state.problem, true) }
            state.slot = slot
            // The decision may have changed since the slot was opened.
            if state.view != slot.currentView { slot.see(state.view) }
            return (state.holdings.take(), nil, false)
        }
        if let problem { slot.refuse(problem) }
        guard !isDone, let holdings else { return }
        slot.occupy(holdings.places)
        slot.hold([holdings.charge])
        slot.charge(account.work)
        slot.attach(self)
        let leave = feeds.subscribe(slot, to: observation, by: account.client)
        let isOver = state.withLock { state in
            if !state.isDone { state.leave = leave }
            return state.isDone
        }
        if isOver { leave() }
    }

    // MARK: - Activity

    var operation: any ControlledOperation { observe }

    func apply(_ permit: Permit) {
        state.withLock { state in
            guard state.view != permit.view else { return }
            state.view = permit.view
            state.slot?.see(permit.view)
        }
    }

    func refuse(_ problem: Problem) {
        let slot = state.withLock { state in
            if state.slot == nil { state.problem = problem }
            return state.slot
        }
        slot?.refuse(problem)
        end()
    }

    func end() {
        let ended = state.withLock { state -> State? in
            guard !state.isDone else { return nil }
            let ended = state
            state = State(problem: state.problem, isDone: true)
            return ended
        }
        guard let ended else { return }
        client.remove(self)
        ended.leave?()
    }
}
