import Coaty

/// An outbound queue that writes only as fast as its client's byte rate allows.
package protocol PacedQueue: AnyObject, Sendable {
    /// Writes as much as may be sent now.
    func writeInTurn()
}

/// The outbound queues of a client that are held back because its byte rate was exceeded. They are released in the
/// order in which they were added.
///
/// All queues of a client share one timer: with separate timers, all of them would wake up for every frame that one of
/// them may send.
struct SendLine {
    struct Waiter {
        weak var queue: (any PacedQueue)?
        let rate: Rate
        /// The threads that release the queue.
        let workers: WorkerPool
    }

    package enum Phase {
        /// No queue is held back.
        case empty
        /// A timer releases the next queue.
        case pausing(Deadline, until: Int64)
        /// A worker releases queues, and starts a timer if some remain when the client exceeds the rate again.
        case releasing
    }

    /// Minimum time between two wakes, in nanoseconds, so that small frames do not need separate timers.
    static let pace: Int64 = 20_000_000
    /// Minimum time until a wake at rates whose burst is filled faster than ``pace``, in nanoseconds.
    static let minimumWait: Int64 = 1_000_000

    var phase = Phase.empty
    /// By number.
    private var waiters: [UInt64: Waiter] = [:]
    /// The number of the next queue, which may have left the line.
    private var first: UInt64 = 0
    /// The number for the next queue that joins.
    private var end: UInt64 = 0

    var isEmpty: Bool { waiters.isEmpty }

    /// The queue that is released next.
    var next: Waiter? {
        mutating get {
            guard !waiters.isEmpty else { return nil }
            while waiters[first] == nil { first += 1 }
            return waiters[first]
        }
    }

    /// Returns the number of the queue in the line.
    mutating func append(_ waiter: Waiter) -> UInt64 {
        defer { end += 1 }
        waiters[end] = waiter
        return end
    }

    mutating func removeNext() { waiters[first] = nil }

    mutating func remove(_ number: UInt64) { waiters[number] = nil }

    /// Returns the delay of the next queue if the client exceeds the rate for some time, in nanoseconds. The delay is
    /// longer than that time, but not so long that the rate is not used because its bucket is full.
    static func pause(_ wait: Int64, at rate: Rate) -> Int64 {
        max(wait, min(pace, rate.nanoseconds(rate.burst)), minimumWait)
    }
}

/// The place of an outbound queue in its client's line. The queue leaves the line when this is released.
package final class SendPlace: Sendable {
    private let account: ClientAccount
    private let number: UInt64

    fileprivate init(of account: ClientAccount, _ number: UInt64) { (self.account, self.number) = (account, number) }

    deinit { account.leaveLine(number) }
}

extension ClientAccount: Job {
    /// Puts an outbound queue at the end of the line if it must be held back: the client exceeds the rate, or other
    /// queues are in the line.
    ///
    /// - Parameter workers: the threads that release the queue with ``PacedQueue/writeInTurn()``.
    /// - Returns: nil if the queue need not be held back.
    package func joinLine(_ queue: some PacedQueue, at rate: Rate, on workers: WorkerPool) -> SendPlace? {
        let now = WorkBucket.now()
        return line.withLock { line in
            let wait = wait(.bytesOut, at: rate, now)
            guard wait != nil || !line.isEmpty else { return nil }
            let waiter = SendLine.Waiter(queue: queue, rate: rate, workers: workers)
            pause(&line, wait ?? 0, for: waiter, now)
            return SendPlace(of: self, line.append(waiter))
        }
    }

    fileprivate func leaveLine(_ number: UInt64) { line.withLock { $0.remove(number) } }

    /// Starts the timer of the line, unless it fires early enough or a worker will start it.
    private func pause(_ line: inout SendLine, _ wait: Int64, for waiter: SendLine.Waiter, _ now: Int64) {
        let wait = SendLine.pause(wait, at: waiter.rate)
        switch line.phase {
        case .releasing: return
        // It fires later if the client's rate was increased meanwhile.
        case .pausing(_, let end) where end <= now + wait: return
        case .pausing, .empty: break
        }
        let deadline = Deadline(after: .nanoseconds(wait)) { [weak self] in self?.endPause(waiter.workers) }
        line.phase = .pausing(deadline, until: now + wait)
    }

    private func endPause(_ workers: WorkerPool) {
        line.withLock { $0.phase = .releasing }
        workers.schedule(self)
    }

    /// Makes outbound queues write, one after the other, as much as may be sent to the client now.
    package func turn() -> TurnEnd {
        let limit = TurnLimit()
        while let queue = releaseNext() {
            queue.writeInTurn()
            if limit.isOver { return .again }
        }
        return .idle
    }

    /// - Returns: nil if no queue may write now.
    private func releaseNext() -> (any PacedQueue)? {
        let now = WorkBucket.now()
        return line.withLock { line in
            while let waiter = line.next {
                if let wait = wait(.bytesOut, at: waiter.rate, now) {
                    line.phase = .empty
                    pause(&line, wait, for: waiter, now)
                    return nil
                }
                line.removeNext()
                if let queue = waiter.queue { return queue }
            }
            line.phase = .empty
            return nil
        }
    }
}
