import Coaty
import HTTPServer
import Synchronization

/// One thing that is observed, for all who observe it: tells them each event in order, and remembers what it has said.
///
/// Locks are taken in this order: that of the registry of objects or a session's, a source's, a request's, an outlet's, a
/// connection's or the memory's.
final class StreamSource: Sendable {
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
        var lanes: [Lane] = []
        /// Those that wait for the broker, since when, and what they are told first.
        var waiting: [(lane: Lane, place: StreamCursor, snapshot: ObjectSnapshot?)] = []
        /// Whether nothing is observed any more.
        var isOver = false
        /// What those are told who come then.
        var end = Problems.withdrawn
        /// End what brings the events.
        var onClose: [@Sendable () -> Void] = []
    }

    /// Tells the places of this source from those of others, and of the same one in another life.
    private let epoch = UInt64.random(in: .min ... .max)
    private let isResumable: Bool
    private let memory: ResumeMemory
    private let state = Mutex(State())

    init(isResumable: Bool, memory: ResumeMemory) {
        self.isResumable = isResumable
        self.memory = memory
    }

    // MARK: - What is observed

    /// Takes what ends the observation.
    func hold(_ onClose: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            guard !state.isOver else { return true }
            state.onClose.append(onClose)
            return false
        }
        if isOver { onClose() }
    }

    /// Takes what the link says of the subscription.
    func update(_ status: SubscriptionStatus) {
        state.withLock { state in
            guard !state.isOver else { return }
            switch status {
            case .standing: state.status = .standing
            case .refused:
                state.status = .refused
                // After a reconnect a broker may refuse what it has granted before.
                for lane in state.lanes { lane.refuse(Problems.subscriptionRefused) }
                state.lanes = []
            case .offline:
                state.status = .offline
                say(.gap, &state)
            }
            admitWaiting(&state)
        }
    }

    /// Tells an event to all.
    func say(_ event: ObservedEvent) {
        state.withLock { state in
            guard !state.isOver else { return }
            say(.event(event), &state)
        }
    }

    private func say(_ content: EventRecord.Content, _ state: inout State) {
        state.lastPosition += 1
        let place = StreamCursor(epoch: epoch, position: state.lastPosition)
        let record = EventRecord(content, cursor: isResumable ? place : nil)
        if isResumable { memory.insert(record, at: place) }
        let shared = SharedFrame()
        for lane in state.lanes { lane.take(record, shared) }
    }

    /// Ends all subscriptions: what was observed is gone.
    ///
    /// - Parameter problem: what those are told that have not begun.
    func end(_ problem: Problem = Problems.withdrawn) {
        let (lanes, waiting, onClose) = state.withLock { state in
            defer {
                state.isOver = true
                state.end = problem
                state.lanes = []
                state.waiting = []
                state.onClose = []
            }
            return (state.lanes, state.waiting, state.onClose)
        }
        close(onClose)
        for (lane, _, _) in waiting { lane.refuse(problem) }
        for lane in lanes { lane.end(.withdrawn) }
    }

    /// Ends what is observed, when nobody is left.
    func close() {
        let onClose = state.withLock { state in
            state.isOver = true
            defer { state.onClose = [] }
            return state.onClose
        }
        close(onClose)
    }

    private func close(_ onClose: [@Sendable () -> Void]) {
        for end in onClose { end() }
        memory.close(epoch)
    }

    // MARK: - Who observes

    /// Adds a subscription: it is told `ok` when the broker has acknowledged, what it missed since its cursor, and from then
    /// on each event.
    ///
    /// - Parameter snapshot: what it is told first where it can't resume, to be resumed behind the cursor.
    func add(_ lane: Lane, snapshot: (StreamCursor) -> ObjectSnapshot? = { _ in nil }) {
        let end = state.withLock { state -> Problem? in
            // Who comes when the broker has just refused it is told so.
            guard !state.isOver || state.status == .refused else { return state.end }
            let now = StreamCursor(epoch: epoch, position: state.lastPosition)
            switch state.status {
            case .opening: state.waiting.append((lane, now, snapshot(now)))
            case .standing, .offline, .refused: admit(lane, since: now, snapshot, &state)
            }
            return nil
        }
        if let end { lane.refuse(end) }
    }

    func remove(_ lane: Lane) {
        state.withLock { state in
            state.lanes.removeAll { $0 === lane }
            state.waiting.removeAll { $0.lane === lane }
        }
    }

    private func admitWaiting(_ state: inout State) {
        let waiting = state.waiting
        state.waiting = []
        for (lane, place, snapshot) in waiting { admit(lane, since: place, { _ in snapshot }, &state) }
    }

    /// - Parameter place: when the client came.
    private func admit(
        _ lane: Lane,
        since place: StreamCursor,
        _ snapshot: (StreamCursor) -> ObjectSnapshot?,
        _ state: inout State
    ) {
        if state.status == .refused {
            lane.refuse(Problems.subscriptionRefused)
            return
        }
        state.lanes.append(lane)
        let now = StreamCursor(epoch: epoch, position: state.lastPosition)
        var beginning = LaneBeginning()
        if let since = lane.options.since {
            let isKnown = since.epoch == epoch && since.position <= now.position
            if !isKnown || !memory.isComplete(behind: since) { beginning.snapshot = snapshot(place) }
            if beginning.snapshot != nil {
                beginning.gap = .gap(nil, nil)
                beginning.backlog = backlog(behind: place, now)
            } else {
                let begin = isKnown ? since : StreamCursor(epoch: epoch, position: 0)
                if !isKnown { beginning.gap = .gap(nil, begin) }
                beginning.backlog = backlog(behind: begin, now)
            }
        } else {
            beginning.snapshot = snapshot(place)
            // Who comes while offline may miss events from the first moment on.
            let isCut = state.status == .offline && place == now
            // Behind a cursor before the snapshot a client would miss that.
            let cursor = isResumable && beginning.snapshot == nil ? place : nil
            if isCut { beginning.gap = .gap(nil, cursor) } else { beginning.cursor = cursor }
            // What came while the broker had not yet acknowledged.
            beginning.backlog = backlog(behind: place, now)
        }
        if beginning.snapshot != nil, beginning.backlog == nil {
            // What is said while the snapshot is told comes behind it.
            beginning.backlog = Backlog(behind: place, upTo: place.position, in: memory)
        }
        lane.begin(beginning)
    }

    private func backlog(behind place: StreamCursor, _ now: StreamCursor) -> Backlog? {
        guard isResumable, place.position < now.position else { return nil }
        return Backlog(behind: place, upTo: now.position, in: memory)
    }
}
