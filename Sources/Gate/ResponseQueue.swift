package import Feeds
package import ProblemDetails

/// Response sink that appends the responses to a request to a client's outbound queue.
package struct ResponseQueue: ResponseSink {
    let subscription: ClientSubscription
    let outbound: OutboundQueue

    package init(subscription: ClientSubscription, outbound: OutboundQueue) {
        self.subscription = subscription
        self.outbound = outbound
    }

    package func take(_ frame: ServerFrame) -> Bool { outbound.append(response: frame, to: subscription) }

    package func end(_ reason: ServerFrame.EndReason, isFiltered: Bool) {
        outbound.end(subscription, reason, isFiltered: isFiltered)
    }

    package func occupy(_ places: [any AnyObject & Sendable]) { subscription.occupy(places) }

    package func discard(_ problem: Problem) { fail(problem) }

    package func fail(_ problem: Problem) { outbound.refuse(subscription, problem) }
}
