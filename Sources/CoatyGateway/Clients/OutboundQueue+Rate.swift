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
            state.pause = nil
            write(&state)
        }
    }

    /// Returns whether events and responses have to wait, and sees to it that they are written later.
    func hasToWait(_ state: inout State) -> Bool {
        guard let rate = state.rate else { return false }
        if state.pause != nil { return true }
        guard let wait = state.account.wait(.bytesOut, at: rate) else { return false }
        if state.waiting == .no {
            state.waiting = .uncounted
            workers.schedule(self)
        }
        state.pause = Deadline(after: max(.nanoseconds(wait), Self.minimumWait)) { [weak self] in self?.resume() }
        return true
    }

    /// Has a worker write again.
    private func resume() {
        state.withLock { $0.pause = nil }
        workers.schedule(self)
    }

    /// Writes as much as the rate and the connection take.
    func writeHeldBack() {
        let uncounted = state.withLock { state -> ClientAccount? in
            write(&state)
            guard state.waiting == .uncounted else { return nil }
            state.waiting = .counted
            return state.account
        }
        // Outside the lock, because it logs.
        uncounted?.countWait(.bytesOut)
    }
}
