import Access
import ProblemDetails

/// Applies changes of the access policy to subscriptions and pending requests.
extension Gate {
    /// Checks an active subscription against the current policy: it continues, continues with another view, or ends
    /// with an error.
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

    /// Checks a pending request against the current policy. The new grants apply to responses from now on.
    ///
    /// - Throws: `Problem` if it is no longer allowed.
    func judge(_ request: PermittedRequest, by principal: Principal) throws(Problem) {
        request.view.change(try answerView(of: request.operation, by: principal))
    }
}
