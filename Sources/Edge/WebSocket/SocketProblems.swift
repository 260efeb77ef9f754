import Base
import ProblemDetails

/// Problems with the frames of a client on `/v1/ws`.
extension Problems {
    static let idInUse = conflict("A subscription or pending request of this connection already has this id.")
    static let identifiedBefore = conflict("This connection already has an identity.")
    static let endedBeforeItBegan = conflict("The subscription was ended before it began.")

    static func tooManyActivities(_ maximum: Int) -> Problem {
        tooManySubscriptions(
            "A connection may have at most \(maximum) subscriptions and pending requests.",
            status: 429
        )
    }

    static let noSuchSubscription = notFound(detail: "This connection has no subscription with this id.")
    static let noSuchRequest = notFound(detail: "This connection has no pending request with this id.")
}
