extension Limits {
    /// Seconds that a stop needs in addition to the drain delay.
    package static let minimumStopTime = 8
    private static let maximumStopTimeout = 300

    /// Connections of clients.
    static let connectionBounds = [
        Bound(
            "maximum-undecided-connections",
            .number,
            in: 16...1_000_000,
            "Maximum number of connections whose protocol is not known yet, or whose WebSocket handshake is not complete",
            atTheBound: "the oldest is closed",
            \.undecidedConnections
        ),
        Bound(
            "maximum-streams",
            .number,
            in: 1...1_000_000,
            "Maximum number of streams over HTTP",
            atTheBound: "503 `too-many-connections`",
            \.streams
        ),
        Bound(
            "maximum-subscriptions-per-connection",
            .number,
            in: 1...100_000,
            "Maximum number of subscriptions and pending requests of a WebSocket connection",
            atTheBound: "`error` 429 `too-many-subscriptions`",
            \.activitiesPerConnection
        ),
        Bound(
            "maximum-queued-bytes",
            .bytes,
            in: 1 << 10...1 << 30,
            "Maximum bytes of the events that a connection queues for its client",
            atTheBound: "events are dropped according to `overflow`, with a gap; one event is always queued",
            \.queuedBytes
        ),
        Bound(
            "maximum-queued-replies",
            .number,
            in: 16...1_000_000,
            "Maximum number of replies to frames that a connection queues for its client, with at most 1 KiB each on average",
            atTheBound: "the connection is closed",
            \.queuedReplies
        ),
        Bound(
            "maximum-body-size",
            .bytes,
            in: 1...8 << 20,
            "Maximum size of a request body and of a client's WebSocket message, at most 8388608",
            atTheBound: "413 `content-too-large`; a WebSocket is closed with 1009",
            \.bodySize
        ),
        Bound(
            "maximum-discarded-body-size",
            .bytes,
            in: 0...1 << 40,
            "Maximum bytes of a request body that the gateway reads and discards after it has refused the request: clients that send the whole body first would not see the response",
            atTheBound: "the connection is closed after the response",
            \.discardedBodySize
        ),
        Bound(
            "discard-timeout",
            .seconds,
            in: 1...3600,
            "Maximum time for which the body of a refused request is read and discarded",
            atTheBound: "the connection is closed after the response; earlier if a new connection needs its place",
            \.discardTimeout
        ),
        Bound(
            "maximum-header-size",
            .bytes,
            in: 1024...64 << 10,
            "Maximum size of request line and header fields",
            atTheBound: "431 `header-fields-too-large`",
            \.headerSize
        ),
        Bound(
            "handshake-timeout",
            .seconds,
            in: 1...60,
            "Maximum time for each step of a new connection: the first bytes (including a TLS handshake), the WebSocket handshake, and `authenticate`",
            atTheBound: "the connection is closed; with 4502 if `authenticate` is missing",
            \.handshakeTimeout
        ),
        Bound(
            "request-timeout",
            .seconds,
            in: 1...3600,
            "Maximum time from the first byte of an HTTP request to the end of its body",
            atTheBound: "the connection is closed without a response",
            \.requestTimeout
        ),
        Bound(
            "connection-timeout",
            .seconds,
            in: 1...3600,
            "Maximum time without progress during an HTTP request or its response: the client sends nothing, or does not read",
            atTheBound: "the connection is closed",
            \.connectionTimeout
        ),
        Bound(
            "keep-alive-timeout",
            .seconds,
            in: 1...3600,
            "Time for which an HTTP connection without a request is kept, at least `connection-timeout`. Responses announce it in `Keep-Alive`. A proxy must close its connections earlier",
            atTheBound: "the connection is closed; earlier if a new connection needs its place",
            \.keepAliveTimeout
        ),
        Bound(
            "drain-delay",
            .seconds,
            in: 0...maximumStopTimeout - minimumStopTime,
            "Time for which the gateway still serves clients after a stop signal, while `/readyz` responds with 503; at most `stop-timeout` minus 8",
            atTheBound:
                "the gateway refuses new requests; the delay is a part of `stop-timeout`, so pending requests have less time",
            \.drainDelay
        ),
        Bound(
            "stop-timeout",
            .seconds,
            in: 10...maximumStopTimeout,
            "Maximum time from a stop signal to the end of the process; pending requests get 2 of 10 seconds, and all seconds beyond 10",
            atTheBound: "the process ends although components have not stopped; the exit status is 1",
            \.stopTimeout
        ),
        Bound(
            "reconnect-spread",
            .seconds,
            in: 0...60,
            "Time over which reconnects are spread when the gateway stops: each client gets a random delay up to this",
            atTheBound: "clients that ignore the delay reconnect earlier or later",
            \.reconnectSpread
        ),
    ]

    /// Authentication and the audit log.
    static let accessBounds = [
        Bound(
            "maximum-token-size",
            .bytes,
            in: 1024...64 << 10,
            "Maximum size of a token of an identity provider; over HTTP, `maximum-header-size` also applies; an `authenticate` frame may have 1 KiB more",
            atTheBound: "401; the connection is closed with 4502",
            \.tokenSize
        ),
        Bound(
            "maximum-verified-tokens",
            .number,
            in: 1...1_000_000,
            "Maximum number of verified tokens of an identity provider in the cache",
            atTheBound: "the oldest is removed, and verified again when a client sends it",
            \.verifiedTokens
        ),
        Bound(
            "maximum-tickets",
            .number,
            in: 1...1_000_000,
            "Maximum number of unused tickets",
            atTheBound: "the oldest is replaced",
            \.tickets
        ),
        Bound(
            "maximum-tickets-per-client",
            .number,
            in: 1...1_000_000,
            "For one client: maximum number of unused tickets",
            atTheBound: "its oldest is replaced",
            \.ticketsPerClient
        ),
        Bound(
            "maximum-failed-attempts",
            .number,
            in: 1...1_000_000,
            "Maximum number of failed authentications of an address in a minute",
            atTheBound: "429 `too-many-attempts`",
            \.failedAttempts
        ),
        Bound(
            "maximum-failing-addresses",
            .number,
            in: 1...10_000_000,
            "Maximum number of addresses whose failed authentications are counted",
            atTheBound: "the oldest is removed",
            \.failingAddresses
        ),
        Bound(
            "maximum-audit-lines",
            .number,
            in: 1...1_000_000,
            "Maximum number of lines queued for the audit log",
            atTheBound: "further lines are dropped and counted",
            \.auditLines
        ),
        Bound(
            "maximum-audit-lines-per-client",
            .number,
            in: 1...1_000_000,
            "Maximum number of lines in the audit log about one client in a second",
            atTheBound: "further lines are dropped and counted",
            \.auditLinesPerClient
        ),
    ]
}
