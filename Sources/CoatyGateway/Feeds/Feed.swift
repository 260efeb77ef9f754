import Coaty
import HTTPServer
import Synchronization

/// A feed: delivers each event, in order, to all subscriptions to the same observation, and adds it to the replay buffer.
///
/// Lock order: object registry or session, feed, request, outbound queue, connection or replay buffer.
final class Feed: Sendable {
    private enum Status {
        /// The broker has not yet acknowledged the subscription.
        case opening
        case standing
        case offline
        case refused
    }

    private struct State {
        var status = Status.opening
        var lastPosition: UInt64 = 0
        var subscriptions: [ClientSubscription] = []
        /// Subscriptions that wait for the broker's acknowledgement, with the feed's cursor and the snapshot at their arrival.
        var pending: [(subscription: ClientSubscription, arrival: FeedCursor, snapshot: ObjectSnapshot?)] = []
        /// Whether the feed has ended or was closed.
        var isOver = false
        /// The problem for subscriptions that are added after the end.
        var end = Problems.withdrawn
        /// Cancel the upstream subscriptions.
        var onClose: [@Sendable () -> Void] = []
    }

    /// Distinguishes the cursors of this feed from those of other feeds, including earlier feeds for the same observation.
    private let epoch = UInt64.random(in: .min ... .max)
    private let isResumable: Bool
    private let replayBuffer: ReplayBuffer
    private let state = Mutex(State())

    init(isResumable: Bool, memory: ReplayBuffer) {
        self.isResumable = isResumable
        replayBuffer = memory
    }

    // MARK: - Upstream

    /// Keeps a closure that cancels an upstream subscription. It is called when the feed ends, or now if it has ended.
    func hold(_ onClose: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            guard !state.isOver else { return true }
            state.onClose.append(onClose)
            return false
        }
        if isOver { onClose() }
    }

    /// Applies the status of the upstream subscription.
    func update(_ status: SubscriptionStatus) {
        state.withLock { state in
            guard !state.isOver else { return }
            switch status {
            case .standing: state.status = .standing
            case .refused:
                state.status = .refused
                // After a reconnect, a broker may refuse a subscription that it granted before.
                for subscription in state.subscriptions { subscription.refuse(Problems.subscriptionRefused) }
                state.subscriptions = []
            case .offline:
                state.status = .offline
                deliver(.gap, &state)
            }
            admitPending(&state)
        }
    }

    /// Delivers an event to every subscription.
    func deliver(_ event: ObservedEvent) {
        state.withLock { state in
            guard !state.isOver else { return }
            deliver(.event(event), &state)
        }
    }

    private func deliver(_ content: EventRecord.Content, _ state: inout State) {
        state.lastPosition += 1
        let cursor = FeedCursor(epoch: epoch, position: state.lastPosition)
        let record = EventRecord(content, cursor: isResumable ? cursor : nil)
        if isResumable { replayBuffer.insert(record, at: cursor) }
        let shared = SharedFrame()
        for subscription in state.subscriptions { subscription.take(record, shared) }
    }

    /// Ends the feed and all its subscriptions, because there is nothing left to observe.
    ///
    /// - Parameter problem: the refusal for subscriptions that have not started.
    func end(_ problem: Problem = Problems.withdrawn) {
        let (subscriptions, pending, onClose) = state.withLock { state in
            defer {
                state.isOver = true
                state.end = problem
                state.subscriptions = []
                state.pending = []
                state.onClose = []
            }
            return (state.subscriptions, state.pending, state.onClose)
        }
        close(onClose)
        for (subscription, _, _) in pending { subscription.refuse(problem) }
        for subscription in subscriptions { subscription.end(.withdrawn) }
    }

    /// Closes the feed when no subscription is left.
    func close() {
        let onClose = state.withLock { state in
            state.isOver = true
            defer { state.onClose = [] }
            return state.onClose
        }
        close(onClose)
    }

    private func close(_ onClose: [@Sendable () -> Void]) {
        for cancel in onClose { cancel() }
        replayBuffer.close(epoch)
    }

    // MARK: - Subscriptions

    /// Adds a subscription. When the broker has acknowledged the feed, the subscription receives `ok`, the events since its
    /// cursor, and then each new event.
    ///
    /// - Parameter snapshot: returns the objects to deliver first if the subscription can't resume. The client can resume after
    ///   the given cursor once it has received all of them.
    func add(_ subscription: ClientSubscription, snapshot: (FeedCursor) -> ObjectSnapshot? = { _ in nil }) {
        let end = state.withLock { state -> Problem? in
            // A subscription that is added just after the broker's refusal is refused for the same reason.
            guard !state.isOver || state.status == .refused else { return state.end }
            let now = FeedCursor(epoch: epoch, position: state.lastPosition)
            switch state.status {
            case .opening: state.pending.append((subscription, now, snapshot(now)))
            case .standing, .offline, .refused: admit(subscription, arrival: now, snapshot, &state)
            }
            return nil
        }
        if let end { subscription.refuse(end) }
    }

    func remove(_ subscription: ClientSubscription) {
        state.withLock { state in
            state.subscriptions.removeAll { $0 === subscription }
            state.pending.removeAll { $0.subscription === subscription }
        }
    }

    private func admitPending(_ state: inout State) {
        let pending = state.pending
        state.pending = []
        for (subscription, arrival, snapshot) in pending {
            admit(subscription, arrival: arrival, { _ in snapshot }, &state)
        }
    }

    /// Starts or refuses a subscription.
    ///
    /// - Parameter arrival: the feed's cursor when the subscription was added.
    private func admit(
        _ subscription: ClientSubscription,
        arrival: FeedCursor,
        _ snapshot: (FeedCursor) -> ObjectSnapshot?,
        _ state: inout State
    ) {
        if state.status == .refused {
            subscription.refuse(Problems.subscriptionRefused)
            return
        }
        state.subscriptions.append(subscription)
        let now = FeedCursor(epoch: epoch, position: state.lastPosition)
        var start = SubscriptionStart()
        if let since = subscription.options.since {
            let isKnown = since.epoch == epoch && since.position <= now.position
            if !isKnown || !replayBuffer.isComplete(behind: since) { start.snapshot = snapshot(arrival) }
            if start.snapshot != nil {
                start.gap = .gap(nil, nil)
                start.replay = replay(behind: arrival, now)
            } else {
                // After an unknown cursor, only what has arrived since: any text would open the replay buffer otherwise.
                let resumption = isKnown ? since : arrival
                if !isKnown { start.gap = .gap(nil, resumption) }
                start.replay = replay(behind: resumption, now)
            }
        } else {
            start.snapshot = snapshot(arrival)
            // A subscription that arrives while the session is offline may miss events from its start on.
            let hasGap = state.status == .offline && arrival == now
            // With a snapshot, no cursor yet: a client that resumed after it would miss the snapshot.
            let cursor = isResumable && start.snapshot == nil ? arrival : nil
            if hasGap { start.gap = .gap(nil, cursor) } else { start.cursor = cursor }
            // Events delivered before the broker acknowledged the feed.
            start.replay = replay(behind: arrival, now)
        }
        if start.snapshot != nil, start.replay == nil {
            // Events that occur while the snapshot is being delivered follow it.
            start.replay = Replay(behind: arrival, upTo: arrival.position, in: replayBuffer)
        }
        subscription.begin(start)
    }

    private func replay(behind cursor: FeedCursor, _ now: FeedCursor) -> Replay? {
        guard isResumable, cursor.position < now.position else { return nil }
        return Replay(behind: cursor, upTo: now.position, in: replayBuffer)
    }
}
