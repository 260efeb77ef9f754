package import Base
import Coaty

/// The work of an outbound queue that runs in turns on the workers, not on the threads that append to the queue or
/// write it.
extension OutboundQueue {
    /// Counts queues that are held back, releases throttled events, and reads snapshots and replays.
    package func turn() -> TurnEnd {
        let limit = TurnLimit()
        countWait()
        while let serial = state.withLock({ $0.releasing.popFirst() }) {
            state.withLock { release(serial, &$0) }
            if limit.isOver { return .again }
        }
        while var reading = state.withLock({ $0.takeSource() }) {
            reading.read(until: limit)
            state.withLock { state in
                change(reading.subscription, &state) { queue, _ in queue.putBack(reading) }
                write(&state)
            }
            if limit.isOver { return .again }
        }
        return .idle
    }

    // MARK: - Throttling

    /// Sets a deadline for the next event that throttling holds back, unless one is set.
    func scheduleRelease(_ serial: UInt64, _ state: inout State) {
        guard let queue = state.queues[serial], queue.deadline == nil, let next = queue.throttle?.next else { return }
        let delay = max(next - .now, state.isIdle ? .zero : Self.recheckInterval)
        state.queues[serial]?.deadline = Deadline(after: delay) { [weak self] in self?.awaitRelease(serial) }
    }

    private func awaitRelease(_ serial: UInt64) {
        state.withLock { state in
            guard state.queues[serial] != nil else { return }
            state.releasing.append(serial)
            workers.schedule(self)
        }
    }

    private func release(_ serial: UInt64, _ state: inout State) {
        guard let subscription = state.queues[serial]?.subscription else { return }
        // Another deadline releases the rest, so that other threads do not wait long for the lock.
        for _ in 0..<Self.releaseBatch where state.isIdle {
            var released: QueuedItem?
            change(subscription, &state) { queue, _ in released = queue.throttle?.release(at: .now) }
            guard let released, let condition = state.condition(of: subscription) else { break }
            deliver(released, to: subscription, condition, &state)
        }
        state.queues[serial]?.deadline = nil
        scheduleRelease(serial, &state)
    }
}
