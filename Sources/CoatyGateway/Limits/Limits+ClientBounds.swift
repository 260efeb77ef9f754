extension Limits {
    /// Seconds that a stop needs besides the drain delay.
    static let minimumStopTime = 8
    private static let maximumStopTimeout = 300

    /// Connections of clients.
    static let connectionBounds = [
        Bound(
            "maximum-undecided-connections",
            .number,
            in: 16...1_000_000,
            "Maximum number of connections whose protocol is not known yet, or whose WebSocket handshake is under way",
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
            atTheBound: "events are dropped as `overflow` says, with a gap; one event is always queued",
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
            "Time for the first bytes of a connection, with TLS together with the handshake, for a WebSocket handshake, and then for `authenticate`, each",
            atTheBound: "the connection is closed, after `authenticate` was awaited with 4502",
            \.handshakeTimeout
        ),
        Bound(
            "request-timeout",
            .seconds,
            in: 1...3600,
            "Time from the first byte of an HTTP request to the end of its body",
            atTheBound: "the connection is closed without a response",
            \.requestTimeout
        ),
        Bound(
            "connection-timeout",
            .seconds,
            in: 1...3600,
            "Time that an HTTP connection may make no progress",
            atTheBound: "the connection is closed",
            \.connectionTimeout
        ),
        Bound(
            "drain-delay",
            .seconds,
            in: 0...maximumStopTimeout - minimumStopTime,
            "Time from a signal to stop until the gateway refuses clients; `/readyz` answers 503 from the signal on; at most `stop-timeout` less 8",
            atTheBound: "the stop begins; a delay does not prolong it, but leaves pending requests less time",
            \.drainDelay
        ),
        Bound(
            "stop-timeout",
            .seconds,
            in: 10...maximumStopTimeout,
            "Time from a signal to stop until the process has ended; pending requests get 2 seconds of 10, and all beyond 10",
            atTheBound: "components that have not stopped are left behind, and the exit status is 1",
            \.stopTimeout
        ),
        Bound(
            "reconnect-spread",
            .seconds,
            in: 0...60,
            "Time over which clients are asked to reconnect when the gateway stops: each gets a random delay",
            atTheBound: "clients that do not understand the request reconnect as they like",
            \.reconnectSpread
        ),
    ]

    /// Authentication and the audit log.
    static let accessBounds = [
        Bound(
            "maximum-token-size",
            .bytes,
            in: 1024...64 << 10,
            "Maximum size of a token of an identity provider, over HTTP within `maximum-header-size`; an `authenticate` frame may have 1 KiB more",
            atTheBound: "401; the connection is closed with 4502",
            \.tokenSize
        ),
        Bound(
            "maximum-verified-tokens",
            .number,
            in: 1...1_000_000,
            "Maximum number of verified tokens of an identity provider that are remembered",
            atTheBound: "the first is verified again when it comes again",
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
            "Maximum number of unused tickets; for one client",
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
            atTheBound: "the first is forgotten",
            \.failingAddresses
        ),
        Bound(
            "maximum-audit-lines",
            .number,
            in: 1...1_000_000,
            "Maximum number of lines of the audit log that wait to be written",
            atTheBound: "further lines are dropped and counted",
            \.auditLines
        ),
        Bound(
            "maximum-audit-lines-per-client",
            .number,
            in: 1...1_000_000,
            "Maximum number of lines of the audit log in a second; for one client",
            atTheBound: "further lines are dropped and counted",
            \.auditLinesPerClient
        ),
    ]
}
