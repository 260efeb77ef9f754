import Coaty

/// The rate of bytes that a client may be sent.
///
/// While the client owes bytes, events and responses stay in their queues, where the bounds and the overflow policy of each subscription
/// apply. Replies are sent, and count.
extension OutboundQueue {
    /// Changes how many bytes the client may be sent in a time.
    ///
    /// - Parameter rate: nil for no limit.
    func limit(to rate: Rate?) {
        state.withLock { state in
            guard state.rate != rate else { return }
            state.rate = rate
            state.place = nil
            write(&state)
        }
    }

    /// Returns whether events and responses have to wait. If so, schedules the next write.
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

    /// Writes one frame, and more if the client may be sent more and no other queue of the client waits. Called when the queue is the
    /// first one in the line.
    func writeInTurn() {
        state.withLock { state in
            state.place = nil
            state.hasTurn = true
            write(&state)
            state.hasTurn = false
        }
    }

    /// Counts that the queue waits, unless that is counted already.
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
