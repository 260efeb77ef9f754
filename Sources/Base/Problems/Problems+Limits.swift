package import ProblemDetails

/// Problems of clients that reach a limit: 429 if their share is used up, 503 if the whole resource is used up.
extension Problems {
    package static func exhausted(_ resource: Resource, _ exhaustion: Tally.Exhaustion) -> Problem {
        let (type, title) = resource.problem
        return Problem(
            type: typePrefix + type,
            title: title,
            status: exhaustion.status,
            detail: exhaustion == .own
                ? "You have used up your share of \(resource.name). Release some of them first."
                : "The maximum number of \(resource.name) is in use.",
            headers: retry
        )
    }

    /// Returns the problem, with the fields `RateLimit` and `RateLimit-Policy` of
    /// draft-ietf-httpapi-ratelimit-headers-11.
    ///
    /// - Parameter wait: the time until the client may send it again, in nanoseconds.
    static func rateLimited(_ kind: Rate.Kind, _ rate: Rate, wait: Int64) -> Problem {
        let milliseconds = Int((wait + 999_999) / 1_000_000)
        let seconds = (milliseconds + 999) / 1000
        let unit = kind.isBytes ? #";qu="content-bytes""# : ""
        return Problem(
            type: typePrefix + "rate-limited",
            title: "Rate limited",
            status: 429,
            detail: "Your \(kind.name) exceed the rate of your roles. Wait for retryAfter milliseconds.",
            members: [("retryAfter", .integer(milliseconds))],
            headers: [
                ("Retry-After", "\(seconds)"),
                ("RateLimit-Policy", "\"\(kind.name)\";q=\(rate.burst);w=\(rate.filling)\(unit)"),
                ("RateLimit", "\"\(kind.name)\";r=0;t=\(seconds)"),
            ]
        )
    }

    static func memoryExhausted(_ exhaustion: Tally.Exhaustion) -> Problem {
        Problem(
            type: typePrefix + "too-much-memory",
            title: "Too much memory in use",
            status: exhaustion.status,
            detail: exhaustion == .own
                ? "You have used up your share of the gateway's memory. Read the queued events, or end subscriptions."
                : "The clients together have used up the memory of the gateway.",
            headers: retry
        )
    }
}

extension Tally.Exhaustion {
    fileprivate var status: Int { self == .own ? 429 : 503 }
}

extension Resource {
    var problem: (type: String, title: String) {
        switch self {
        case .connections: ("too-many-connections", "Too many connections")
        case .unauthenticated: ("too-many-unauthenticated", "Too many unauthenticated connections")
        case .subscriptions, .feeds, .brokerConnections: ("too-many-subscriptions", "Too many subscriptions")
        case .requests: ("too-many-pending-requests", "Too many pending requests")
        case .outbox: ("queue-full", "Queue full")
        case .identities: ("too-many-identities", "Too many identities")
        case .ioNodes: ("too-many-io-nodes", "Too many IO nodes")
        case .objects: ("too-many-objects", "Too many objects")
        case .keptObjects: ("too-many-kept-objects", "Too many kept objects")
        case .queries: ("too-many-queries", "Too many queries")
        case .idempotencyKeys: ("too-many-idempotency-keys", "Too many idempotency keys")
        }
    }
}
