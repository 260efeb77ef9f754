extension Mistake {
    private static let events =
        "The events are advertise, associate, call, channel, deadvertise, discover, iostate, iovalue, query, raw, "
        + "routing, traffic, update."
    private static let upgrade = "Open it with a WebSocket client, by a URL with ws: or wss:, on a new connection."

    private static func upgrade(_ path: String) -> String {
        "426 upgrade-required: \(upgrade) Without WebSocket, GET \(path) sends events as Server-Sent Events."
    }

    private static func near(_ path: String, _ meant: String) -> String {
        "404 not-found: There is nothing at \(path). Did you mean \(meant)?"
    }

    /// Unknown paths, and wrong methods or media types for known ones.
    static let paths: [Row] = [
        ("GET /v1/object", nil, near("/v1/object", "/v1/objects")),
        ("POST /v1/advertize", "{}", near("/v1/advertize", "/v1/advertise")),
        ("POST /advertise", "{}", near("/advertise", "/v1/advertise")),
        ("GET /V1/Objects", nil, near("/V1/Objects", "/v1/objects")),
        ("GET /v1/objects/", nil, near("/v1/objects/", "/v1/objects")),
        ("GET //v1/objects?limit=1", nil, near("//v1/objects", "/v1/objects")),
        ("GET /health", nil, near("/health", "/healthz")),
        ("POST /v1/call", "{}", near("/v1/call", "/v1/call/{operation}")),
        ("GET /v1/sse", nil, near("/v1/sse", "/v1/sse/{event}")),
        ("POST /v1/io/node", "{}", near("/v1/io/node", "/v1/io/nodes")),
        ("GET /v1/routing/contexts/a/rule", nil, near("/v1/routing/contexts/a/rule", "/v1/routing/contexts/a/rules")),
        (
            "POST /v1/raw/plant/1", nil,
            "404 not-found: There is nothing at /v1/raw/plant/1. A slash in a topic is written as %2F: "
                + "/v1/raw/plant%2F1."
        ),
        (
            "GET /v1/objects/a/b", nil,
            "404 not-found: There is nothing at /v1/objects/a/b. A slash in an id is written as %2F: "
                + "/v1/objects/a%2Fb."
        ),
        (
            "GET /v1/routing/contexts/a/b/rules", nil,
            "404 not-found: There is nothing at /v1/routing/contexts/a/b/rules. A slash in an id is written "
                + "as %2F: /v1/routing/contexts/a%2Fb/rules."
        ),
        (
            "POST /v1/channel/plant/1", "{}",
            "404 not-found: There is nothing at /v1/channel/plant/1. channelId must not contain a slash."
        ),
        ("GET /nothing/like/it", nil, "404 not-found: There is nothing at /nothing/like/it."),
        (
            "GET /v1/sse/advertize?objectType=t", nil,
            "404 not-found: There is no event advertize. Did you mean advertise? \(events)"
        ),
        ("GET /v1/sse/rumour", nil, "404 not-found: There is no event rumour. \(events)"),
        (
            "WS /v1/ws/chanel?channelId=c", nil,
            "404 not-found: There is no event chanel. Did you mean channel? \(events)"
        ),
        ("WS /v1/ws/", nil, "404 not-found: The path names no event. \(events)"),
        ("WS /ws", nil, near("/ws", "/v1/ws")),
        ("WS /socket", nil, "404 not-found: There is nothing at /socket."),
        ("GET /v1/ws", nil, upgrade("/v1/sse/{event}")),
        ("GET /v1/ws/channel?channelId=c", nil, upgrade("/v1/sse/channel")),
        ("GET /v1/ws/rumour", nil, upgrade("/v1/sse/{event}")),
        ("POST /v1/objects", "{}", "405 method-not-allowed: This path allows GET, HEAD, OPTIONS."),
    ]
}
