import ProblemDetails

/// Response sink that appends the responses to a request to a client's outbound queue.
struct ResponseQueue: ResponseSink {
    let subscription: ClientSubscription
    let outbound: OutboundQueue

    func take(_ frame: ServerFrame) -> Bool { outbound.append(response: frame, to: subscription) }

    func end(_ reason: ServerFrame.EndReason, isFiltered: Bool) {
        outbound.end(subscription, reason, isFiltered: isFiltered)
    }

    func occupy(_ places: [any AnyObject & Sendable]) { subscription.occupy(places) }

    func discard(_ problem: Problem) { fail(problem) }

    func fail(_ problem: Problem) { outbound.refuse(subscription, problem) }
}
