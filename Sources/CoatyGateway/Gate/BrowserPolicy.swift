import HTTPServer
import ProblemDetails

/// Protects a gateway that its users' browsers can reach from the web pages that they visit.
///
/// - A page of another origin may send requests only if its origin is allowed (the Fetch Standard's CORS protocol).
///   Browsers send `Origin` with requests that change state, with those whose answers a page could read, and with
///   WebSocket handshakes. With other requests, such as for images and frames, they send `Sec-Fetch-Site`, but only
///   over TLS and to loopback addresses.
/// - For browsers, a page whose DNS name resolves to the gateway's address (DNS rebinding) has the gateway's origin.
///   Therefore the host name must be one that can't be in the public DNS, or an allowed one.
struct BrowserPolicy: Sendable {
    /// The origins, in addition to the gateway's own, whose pages may use the gateway.
    var allowedOrigins: Set<WebOrigin> = []
    /// The public host names under which clients may reach the gateway.
    var allowedHosts: Set<HostName> = []

    /// Paths that are served under every host name: probes may use any.
    private static let anyHost: Set = ["/healthz", "/readyz"]
    /// Request fields that pages of allowed origins may send.
    private static let requestFields =
        "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Traceparent, X-Request-Id"
    /// Response fields that pages of allowed origins may read.
    private static let responseFields =
        "ETag, Idempotency-Replayed, Io-Source-Id, Io-Value-Timestamp, Location, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id"
    /// For paths that do not exist, so that the page can read the 404.
    private static let allMethods = HTTPMethod.allCases.map(\.rawValue).joined(separator: ", ")
    /// The time for which a browser may cache the answer to a preflight, in seconds.
    private static let preflightMaximumAge = 600

    /// The origin of an accepted request.
    enum Sender {
        /// The gateway's own page, or a client that is not a page.
        case own
        /// A page of an allowed origin.
        case page(WebOrigin)
    }

    /// Checks the origin of an HTTP request.
    ///
    /// - Parameter isPublic: whether pages of every origin may load the resource.
    func sender(of head: borrowing HTTPRequestHead, isPublic: Bool) throws(Problem) -> Sender {
        let origin = head.header("Origin")
        guard origin != nil || isEmbedded(head), !isPublic else { return .own }
        guard let origin else { throw Problems.originNotAllowed(nil) }
        return try check(origin: origin, host: head.header("Host")).map(Sender.page) ?? .own
    }

    /// Checks that no public DNS name leads to the gateway under the host of a request. Needed only for requests
    /// without credentials: a page of a foreign name has none.
    func checkHost(_ head: borrowing HTTPRequestHead) throws(Problem) {
        guard !Self.anyHost.contains(head.pathTemplate ?? "") else { return }
        if let refused = refusedHost(head.header("Host")) ?? refusedHost(head.targetAuthority) {
            throw Problems.hostNotAllowed(refused)
        }
    }

    /// Returns the response to the preflight of a page of another origin; nil if the request is not such a preflight. A
    /// preflight has no credentials; the following request is checked separately.
    ///
    /// Origins that are not allowed get the same response: only then does the browser send the request, whose refusal
    /// the page can read.
    ///
    /// - Parameter isPublic: whether pages of every origin may load the resource.
    func preflight(_ head: borrowing HTTPRequestHead, isPublic: Bool) -> HTTPResponse? {
        guard !isPublic, head.method == .options, head.header("Access-Control-Request-Method") != nil,
            let origin = head.header("Origin").flatMap(WebOrigin.init),
            head.header("Host").map(origin.isSame(asHost:)) != true
        else { return nil }
        return preflight(for: origin, allow: head.allow)
    }

    /// Returns whether a page of another origin loads the resource as a part of itself. Following a link does not
    /// count.
    private func isEmbedded(_ head: borrowing HTTPRequestHead) -> Bool {
        guard let site = head.header("Sec-Fetch-Site"), site == "cross-site" || site == "same-site" else {
            return false
        }
        return head.header("Sec-Fetch-Dest") != "document"
    }

    /// Checks the origin of a WebSocket handshake, to which CORS does not apply.
    func sender(ofHandshake origin: String?, host: String?) throws(Problem) -> Sender {
        guard let origin else { return .own }
        return try check(origin: origin, host: host).map(Sender.page) ?? .own
    }

    /// Checks the host of a WebSocket handshake without credentials.
    func checkHost(_ host: String?) throws(Problem) {
        if let refused = refusedHost(host) { throw Problems.hostNotAllowed(refused) }
    }

    /// - Returns: the origin for the header fields of the answer; nil for the gateway's own origin.
    private func check(origin text: String, host: String?) throws(Problem) -> WebOrigin? {
        guard let origin = WebOrigin(text) else { throw Problems.originNotAllowed(nil) }
        if let host, origin.isSame(asHost: host) { return nil }
        guard allowedOrigins.contains(origin) else { throw Problems.originNotAllowed(origin) }
        return origin
    }

    /// Returns the host if it is not allowed. A request without a host (HTTP/1.0) does not come from a browser.
    private func refusedHost(_ host: String?) -> String? {
        guard let host else { return nil }
        guard let name = HostName(authority: host), name.isPrivate || allowedHosts.contains(name) else { return host }
        return nil
    }

    /// Returns the header fields of every answer to a sender.
    static func headers(for sender: Sender) -> [(name: String, value: String)] {
        guard case .page(let origin) = sender else { return [] }
        return [
            ("Access-Control-Allow-Origin", origin.text), ("Access-Control-Expose-Headers", responseFields),
            ("Vary", "Origin"),
        ]
    }

    private func preflight(for origin: WebOrigin, allow: String?) -> HTTPResponse {
        HTTPResponse(
            status: 204,
            headers: [
                ("Access-Control-Allow-Origin", origin.text),
                ("Access-Control-Allow-Methods", allow ?? Self.allMethods),
                ("Access-Control-Allow-Headers", Self.requestFields),
                ("Access-Control-Max-Age", String(Self.preflightMaximumAge)),
                ("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"),
            ]
        )
    }
}

extension Problems {
    /// Returns the refusal of a page because of its origin. The page can read it, and nothing else.
    ///
    /// - Parameter origin: nil if the page has none, or the browser does not send it. Then the page can't read it.
    static func originNotAllowed(_ origin: WebOrigin?) -> Problem {
        Problem(
            type: typePrefix + "origin-not-allowed",
            title: "Origin not allowed",
            status: 403,
            detail: origin.map { origin in
                "Pages of the origin \(short(origin.text)) may not use this gateway. To allow them, add the origin to the setting"
                    + " allowed-origins."
            }
                ?? "Pages without an http or https origin, and pages of other origins that embed this resource, may not use the"
                + " gateway.",
            headers: origin.map { [("Access-Control-Allow-Origin", $0.text), ("Vary", "Origin")] } ?? []
        )
    }

    /// Returns the setting that allows a host, with its value in each of its notations. Leaves out the hosts that are
    /// already allowed, which not everyone may see.
    private static func allowing(_ host: String) -> String {
        guard let name = HostName(authority: host)?.text else { return "add a valid name to the setting allowed-hosts" }
        let value = short(name)
        return "add \(value) to the setting allowed-hosts (--allowed-hosts \(value), "
            + "COATY_GATEWAY_ALLOWED_HOSTS=\(value), or allowed-hosts: \(value) in the configuration file)"
    }

    static func hostNotAllowed(_ host: String) -> Problem {
        Problem(
            type: typePrefix + "host-not-allowed",
            title: "Host not allowed",
            status: 421,
            detail: """
                The host \(short(host)) could be a public DNS name that a foreign web page controls. To allow it, \
                \(allowing(host)). Or use the gateway's IP address.
                """
        )
    }
}
