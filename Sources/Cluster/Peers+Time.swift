import Coaty

/// What the passage of time does.
extension Peers {
    func advance() {
        let (now, period) = (now, manager.onlinePeriod)
        let (changes, isDue, wanted, silent, live, cameOnline) = state.withLock { state in
            let cameOnline = state.online?.period != period
            if cameOnline { state.online = period.map { ($0, now) } }
            let changes = state.table.advance(
                to: now,
                timeout: Self.timeout,
                online: state.online?.since,
                memory: memory
            )
            let age = state.lastSent.map { now - $0 } ?? Self.interval
            let wanted = state.parts.filter { _, part in
                part.isWanted && part.lastWhole.map { now - $0 > Self.wholeInterval } ?? true
            }
            for name in wanted.keys {
                state.parts[name]?.isWanted = false
                state.parts[name]?.lastWhole = now
            }
            let isDue = age >= Self.interval || state.isDue && age >= Self.tick
            let silent = state.isProbing ? [] : state.table.takeProbes(at: now, interval: Self.probeInterval)
            state.isProbing = state.isProbing || !silent.isEmpty
            return (changes, isDue, wanted.keys, silent, state.table.live.map(\.session), cameOnline)
        }
        handle(changes)
        // Not only with the next message, up to two seconds later.
        requestMissing(of: live, at: now)
        if !silent.isEmpty { probe(silent) }
        if cameOnline, period != nil { findURL() }
        for part in wanted { sendWhole(part) }
        if isDue { sendState() }
    }

    /// Finds out which silent peers are ready.
    private func probe(_ silent: [(session: PeerMessage.Session, url: String)]) {
        probes.async { [weak self] in
            for (session, url) in silent {
                let isReady = url != self?.state.withLock(\.url) && PeerProbe.isReady(url)
                guard let id = self?.state.withLock({ $0.table.setReachable(session, isReady) }) else { continue }
                self?.logger.warning(
                    "another gateway of the cluster is reachable, but its messages do not arrive through the broker",
                    metadata: ["agent": "\(id)"]
                )
            }
            self?.state.withLock { $0.isProbing = false }
        }
    }

    func handle(_ changes: [PeerTable.Change]) {
        guard !changes.isEmpty else { return }
        let parts = state.withLock { state in
            state.isDue = true
            for case .left(let id) in changes { state.forgetCopies(of: id) }
            return state.parts.values.map(\.part)
        }
        for change in changes {
            switch change {
            case .joined(let id):
                logger.info("another gateway is in the cluster", metadata: ["agent": "\(id)"])
            case .missing(let id):
                logger.warning("another gateway of the cluster sends no messages", metadata: ["agent": "\(id)"])
            case .stopping(let id), .left(let id):
                logger.info("another gateway leaves the cluster", metadata: ["agent": "\(id)"])
            }
            for part in parts { part.handle(change) }
        }
    }
}
