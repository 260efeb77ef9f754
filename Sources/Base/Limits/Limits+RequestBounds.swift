extension Limits {
    /// Requests, subscriptions and their responses.
    static let requestBounds = [
        Bound(
            "maximum-timeout",
            .milliseconds,
            in: 1...3_600_000,
            "Maximum timeout of a request",
            atTheBound: "400 `invalid-parameter`",
            \.timeout
        ),
        Bound(
            "maximum-buffered-events",
            .number,
            in: 1...1_000_000,
            "Maximum `buffer`, the number of events that a subscription queues",
            atTheBound: "400 `invalid-parameter`; the default of `buffer` is 256",
            \.buffer
        ),
        Bound(
            "maximum-response-bytes",
            .bytes,
            in: 1 << 10...1 << 30,
            "Maximum bytes of the responses to a request, and of the responses that a connection queues for its client",
            atTheBound: "the request ends with reason `overflow`",
            \.responseBytes
        ),
        Bound(
            "maximum-waiting-responses",
            .number,
            in: 1...1_000_000,
            "Maximum number of responses to a request that wait for a worker; their size is at most `maximum-response-bytes`",
            atTheBound: "the request ends with reason `overflow`",
            \.waitingResponses
        ),
        Bound(
            "maximum-filter-properties",
            .number,
            in: 1...10_000,
            "Maximum number of property conditions in a filter",
            atTheBound: "400 `invalid-value`",
            \.filterProperties
        ),
        Bound(
            "maximum-filter-values",
            .number,
            in: 10...1_000_000,
            "Maximum number of JSON values in a filter",
            atTheBound: "400 `invalid-value`",
            \.filterValues
        ),
        Bound(
            "maximum-filter-steps",
            .number,
            in: 100...10_000_000,
            "Maximum steps of a filter for one event, of `until` for one response, and of `where` of a grant for one request, about 50 ns each",
            atTheBound:
                "the event is left out, with a gap; after 100 in a row, or with `until`, 422 `filter-too-expensive`; `where` is not true",
            \.filterSteps
        ),
        Bound(
            "maximum-throttled-objects",
            .number,
            in: 1...1_000_000,
            "Maximum number of objects that a subscription with `throttle` throttles at a time; their events count as queued",
            atTheBound: "events of further objects are not throttled",
            \.throttledObjects
        ),
        Bound(
            "maximum-fields",
            .number,
            in: 1...10_000,
            "Maximum number of properties in `fields`",
            atTheBound: "400 `invalid-parameter`",
            \.fields
        ),
        Bound(
            "maximum-batch-publications",
            .number,
            in: 1...1_000_000,
            "Maximum number of publications in a batch",
            atTheBound: "413 `content-too-large`",
            \.batchPublications
        ),
        Bound(
            "maximum-deadvertised-ids",
            .number,
            in: 1...100_000,
            "Maximum number of ids in a Deadvertise event of a client",
            atTheBound: "400 `invalid-value`",
            \.deadvertisedIds
        ),
        Bound(
            "maximum-agent-name-size",
            .bytes,
            in: 1...4096,
            "Maximum size of the name of an identity or IO node",
            atTheBound: "400 `invalid-value`",
            \.agentNameSize
        ),
        Bound(
            "maximum-io-node-points",
            .number,
            in: 1...10_000,
            "Maximum number of IO sources and IO actors of an IO node",
            atTheBound: "400 `invalid-value`",
            \.ioNodePoints
        ),
        Bound(
            "maximum-io-node-size",
            .bytes,
            in: 1024...8 << 20,
            "Maximum size of the registration of an IO node",
            atTheBound: "413 `content-too-large`",
            \.ioNodeSize
        ),
        Bound(
            "maximum-answerable-requests",
            .number,
            in: 1...1_000_000,
            "Maximum number of observed requests that clients may answer",
            atTheBound: "the oldest can no longer be answered",
            \.answerableRequests
        ),
        Bound(
            "maximum-answerable-request-bytes",
            .bytes,
            in: 1 << 10...1 << 40,
            "Maximum bytes of observed requests that clients may answer",
            derivation: "16777216, less if maximum-memory is below 512 MiB",
            atTheBound: "the oldest can no longer be answered",
            \.answerableRequestBytes
        ),
        Bound(
            "maximum-answerable-requests-per-client",
            .number,
            in: 1...1_000_000,
            "Maximum number of observed requests that one client may answer",
            atTheBound: "the client can no longer answer the oldest",
            \.answerableRequestsPerClient
        ),
        Bound(
            "maximum-discover-answers",
            .number,
            in: 1...1_000_000,
            "Maximum number of answers of one client to a Discover event",
            atTheBound: "404",
            \.discoverAnswers
        ),
    ]
}
