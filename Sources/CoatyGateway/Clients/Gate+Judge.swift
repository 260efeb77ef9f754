import HTTPServer

/// Applies changes of the access policy to what clients have begun.
extension Gate {
    /// Judges a standing subscription by the current policy: it continues, continues with another view, or ends with an error.
    ///
    /// - Parameter principal: returns the current principal.
    func judge(
        _ subscription: ClientSubscription,
        _ operation: Observe,
        _ outbound: OutboundQueue,
        by principal: () -> Principal?
    ) {
        // The policy and the principal are read under the lock, so that the last call applies the newest ones.
        subscription.judging.withLock { _ in
            guard let principal = principal() else { return }
            do throws(Problem) {
                let view = try view(of: operation, by: principal)
                if view != subscription.currentView { outbound.change(view, of: subscription) }
            } catch {
                outbound.refuse(subscription, error)
            }
        }
    }

    /// Judges a pending request by the current policy: answers that come from now on are judged by the new grants.
    ///
    /// - Throws: `Problem` if it is no longer allowed.
    func judge(_ request: PermittedRequest, by principal: Principal) throws(Problem) {
        request.view.change(try answerView(of: request.operation, by: principal))
    }
}
