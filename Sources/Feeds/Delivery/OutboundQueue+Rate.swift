package import Base
import Coaty

/// The limit on the rate of bytes that are sent to a client.
///
/// While the client has exceeded the rate, events and responses stay in their queues, where the bounds and the overflow
/// policy of each subscription apply. Replies are sent nevertheless, and count.
extension OutboundQueue {
    /// Changes the rate of bytes that may be sent to the client.
    ///
    /// - Parameter rate: nil for no limit.
    package func limit(to rate: Rate?) {
        state.withLock { state in
            guard state.rate != rate else { return }
            state.rate = rate
            state.place = nil
            write(&state)
        }
    }

    /// Returns whether events and responses are held back. If so, schedules the next write.
    func hasToWait(_ state: inout State) -> Bool {
        guard let rate = state.rate else { return false }
        if state.place != nil { return true }
        if state.hasTurn {
            state.hasTurn = false
            return false
        }
        guard let place = state.account.joinLine(self, at: rate, on: workers) else { return false }
        state.place = place
        if state.waiting == .no {
            state.waiting = .uncounted
            workers.schedule(self)
        }
        return true
    }

    /// Writes one frame, and further frames if the rate allows and no other queue of the client is held back. Called
    /// when the queue is the first one in the line.
    package func writeInTurn() {
        state.withLock { state in
            state.place = nil
            state.hasTurn = true
            write(&state)
            state.hasTurn = false
        }
    }

    /// Counts that the queue is held back, unless that is counted already.
    func countWait() {
        let account = state.withLock { state -> ClientAccount? in
            guard state.waiting == .uncounted else { return nil }
            state.waiting = .counted
            return state.account
        }
        // Outside the lock, because it logs.
        account?.countWait(.bytesOut)
    }
}
