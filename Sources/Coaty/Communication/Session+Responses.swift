/// Subscriptions to the responses of requests.
extension Session {
    /// The subscription of a request to its responses.
    struct ResponseSubscription {
        let type: CommunicationEventType
        let correlationId: CoatyUUID
        /// Whether it was subscribed before the request.
        let isAhead: Bool
    }

    /// Returns a new correlation id, which the caller must observe next. Its responses may already be subscribed,
    /// unless the connection is lost in between.
    func takeCorrelationId(for type: CommunicationEventType) -> ResponseSubscription {
        let id = core.withLock { $0.reserve.take(type) }
        return ResponseSubscription(type: type, correlationId: id ?? CoatyUUID(), isAhead: id != nil)
    }

    /// Subscribes ids for further requests, behind the current one.
    func refillReserve(_ responses: ResponseSubscription, _ core: inout Core) {
        let ids = core.reserve.refill(responses.type, isMissed: !responses.isAhead)
        if !ids.isEmpty {
            let selectors = ids.map { EventSelector.responses(responses.type, correlationId: $0) }
            core.outbox.subscribe(ahead: core.subscriptions.requests(ahead: selectors))
        }
        if core.reserveDeadline == nil { awaitIdleReserve(&core) }
    }

    private func awaitIdleReserve(_ core: inout Core) {
        core.reserveDeadline = Deadline(after: ResponseReserve.idleTime) { [weak self] in self?.emptyIdleReserve() }
    }

    private func emptyIdleReserve() {
        let mustWake = core.withLock { core in
            core.reserveDeadline = nil
            guard core.state.sends else { return false }
            let unused = core.reserve.removeIfIdle()
            if !core.reserve.isEmpty { awaitIdleReserve(&core) }
            return endReserved(unused, &core)
        }
        if mustWake { binding.wake() }
    }

    /// Ends subscriptions that no request has used.
    ///
    /// - Returns: whether the binding must be woken.
    func endReserved(_ selectors: [EventSelector], _ core: inout Core) -> Bool {
        var mustWake = false
        for selector in selectors where core.outbox.unsubscribe(selector) { mustWake = true }
        return mustWake
    }
}
