import HTTPServer

/// What is wrong with what a client on `/v1/ws` says.
extension Problems {
    static let idInUse = Problem(
        type: typePrefix + "conflict",
        title: "Conflict",
        status: 409,
        detail: "A subscription or request of this id is under way."
    )

    static let identifiedBefore = Problem(
        type: typePrefix + "conflict",
        title: "Conflict",
        status: 409,
        detail: "The connection has an identity already."
    )

    static let tooManyActivities = Problem(
        type: typePrefix + "too-many-subscriptions",
        title: "Too many subscriptions",
        status: 503,
        detail: "A connection has at most \(SocketSession.maximumActivities) subscriptions and requests."
    )

    static let endedBeforeItBegan = Problem(
        type: typePrefix + "conflict",
        title: "Conflict",
        status: 409,
        detail: "The subscription was ended before it began."
    )

    static let notIdentified = Problem(
        type: typePrefix + "broker-unavailable",
        title: "Broker unavailable",
        status: 503,
        detail: "The identity could not be advertised in time."
    )

    static let noSuchSubscription = notFound(detail: "There is no subscription of this id.")
    static let noSuchRequest = notFound(detail: "There is no request of this id under way.")
}
