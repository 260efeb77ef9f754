import Coaty
import DequeModule
import Synchronization

/// One thing that is observed, for all who observe it: tells them each event in order, and remembers what it has said.
///
/// Locks are taken in this order: that of the registry of objects, a source's, an outlet's, a connection's.
final class StreamSource: Sendable {
    private enum Status {
        /// The broker has not yet acknowledged the subscription.
        case opening
        case standing
        case offline
        case refused
        case ended
    }

    private struct State {
        var status = Status.opening
        var lastPosition: UInt64 = 0
        /// The positions of the gaps in the log, in order, and of the last one before it.
        var gaps: Deque<UInt64> = []
        /// The numbers of the last records in the memory, in order, without a hole; the last is that of the last position.
        var log: Deque<UInt64> = []
        var lanes: [Lane] = []
        /// Those that wait for the broker, and what they are told first. No event comes between.
        var waiting: [(lane: Lane, snapshot: ObjectSnapshot?)] = []
        /// Ends what brings the events.
        var onClose: (@Sendable () -> Void)?
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
            guard state.status != .ended else { return true }
            state.onClose = onClose
            return false
        }
        if isOver { onClose() }
    }

    /// Takes what the link says of the subscription.
    func update(_ status: SubscriptionStatus) {
        state.withLock { state in
            guard state.status != .ended else { return }
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
            // A broker may send events before it acknowledges.
            if state.status == .opening {
                state.status = .standing
                admitWaiting(&state)
            }
            guard state.status != .ended else { return }
            say(.event(event), &state)
        }
    }

    private func say(_ content: EventRecord.Content, _ state: inout State) {
        state.lastPosition += 1
        let cursor = isResumable ? StreamCursor(epoch: epoch, position: state.lastPosition) : nil
        let record = EventRecord(content, cursor: cursor)
        if isResumable {
            let (number, first) = memory.insert(record)
            state.log.append(number)
            while let oldest = state.log.first, oldest < first { state.log.removeFirst() }
            if case .gap = content { state.gaps.append(state.lastPosition) }
            let forgotten = state.lastPosition - UInt64(state.log.count)
            while state.gaps.count > 1, state.gaps[1] <= forgotten { state.gaps.removeFirst() }
        }
        let shared = SharedFrame()
        for lane in state.lanes { lane.take(record, shared) }
    }

    /// Ends all subscriptions: what was observed is gone.
    func end(_ reason: StreamFrame.EndReason) {
        let (lanes, onClose) = state.withLock { state in
            defer {
                state.status = .ended
                state.lanes = []
                state.waiting = []
            }
            return (state.waiting.map(\.lane) + state.lanes, state.onClose.take())
        }
        onClose?()
        for lane in lanes { lane.end(reason) }
    }

    /// Ends what is observed, when nobody is left.
    func close() {
        let onClose = state.withLock { state in
            state.status = .ended
            return state.onClose.take()
        }
        onClose?()
    }

    // MARK: - Who observes

    /// Adds a subscription: it is told `ok` when the broker has acknowledged, what it missed since its cursor, and from then
    /// on each event.
    ///
    /// - Parameter snapshot: what it is told first where it can't resume, to be resumed behind the cursor.
    func add(_ lane: Lane, snapshot: (StreamCursor) -> ObjectSnapshot? = { _ in nil }) {
        let isOver = state.withLock { state in
            switch state.status {
            case .ended: return true
            case .opening:
                let now = StreamCursor(epoch: epoch, position: state.lastPosition)
                state.waiting.append((lane, snapshot(now)))
            case .standing, .offline, .refused: admit(lane, snapshot, &state)
            }
            return false
        }
        if isOver { lane.end(.withdrawn) }
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
        for (lane, snapshot) in waiting { admit(lane, { _ in snapshot }, &state) }
    }

    private func admit(_ lane: Lane, _ snapshot: (StreamCursor) -> ObjectSnapshot?, _ state: inout State) {
        if state.status == .refused {
            lane.refuse(Problems.subscriptionRefused)
            return
        }
        state.lanes.append(lane)
        let now = StreamCursor(epoch: epoch, position: state.lastPosition)
        guard let since = lane.options.since else {
            let snapshot = snapshot(now)
            lane.begin(isResumable && snapshot == nil ? now : nil)
            // Offline, an event may be missed from the first moment on.
            if state.status == .offline { lane.lose(nil) }
            if let snapshot { lane.prepend(snapshot) }
            return
        }
        lane.begin(nil)
        let known = since.epoch == epoch && since.position <= state.lastPosition
        let records = memory.records(state.log.suffix(known ? Int(state.lastPosition - since.position) : .max))
        let missing = known ? Int(state.lastPosition - since.position) - records.count : nil
        guard missing != 0 else {
            lane.prepend(records)
            return
        }
        // Of what was forgotten nobody knows what a filter would have passed, nor what a gap in it has lost.
        let kept = state.lastPosition - UInt64(records.count)
        let hasGap = known && state.gaps.contains { $0 > since.position && $0 <= kept }
        lane.lose(lane.wantsAll && !hasGap ? missing : nil)
        if let snapshot = snapshot(now) { lane.prepend(snapshot) } else { lane.prepend(records) }
    }
}
