import HTTPServer

/// Problems with the frames of a client on `/v1/ws`.
extension Problems {
    static let idInUse = conflict("A subscription or request of this id is under way.")
    static let identifiedBefore = conflict("The connection has an identity already.")
    static let endedBeforeItBegan = conflict("The subscription was ended before it began.")

    static func tooManyActivities(_ maximum: Int) -> Problem {
        tooManySubscriptions("A connection has at most \(maximum) subscriptions and requests.", status: 429)
    }

    static let notIdentified = Problem(
        type: typePrefix + "broker-unavailable",
        title: "Broker unavailable",
        status: 503,
        detail: "The identity could not be advertised in time."
    )

    static let noSuchSubscription = notFound(detail: "There is no subscription of this id.")
    static let noSuchRequest = notFound(detail: "There is no request of this id under way.")
}
