import Access
import Base
import HTTPServer
import ProblemDetails

/// The policy for the requests of HTTP, and the header fields of the Fetch Standard's CORS protocol.
extension BrowserPolicy {
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

    /// Checks the origin of an HTTP request.
    ///
    /// - Parameter isPublic: whether pages of every origin may load the resource.
    func sender(of head: borrowing HTTPRequestHead, isPublic: Bool) throws(Problem) -> Sender {
        let origin = head.header("Origin")
        guard origin != nil || isEmbedded(head), !isPublic else { return .own }
        guard let origin else { throw Problems.originNotAllowed(nil) }
        return try self.sender(origin: origin, host: head.header("Host"))
    }

    /// Checks the host of an HTTP request without credentials.
    func checkHost(_ head: borrowing HTTPRequestHead) throws(Problem) {
        guard !Self.anyHost.contains(head.pathTemplate ?? "") else { return }
        try checkHost(head.header("Host"))
        try checkHost(head.targetAuthority)
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
