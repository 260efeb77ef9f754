import Base
package import ProblemDetails

/// Protects a gateway that its users' browsers can reach from the web pages that they visit.
///
/// - A page of another origin may send requests only if its origin is allowed (the Fetch Standard's CORS protocol).
///   Browsers send `Origin` with requests that change state, with those whose answers a page could read, and with
///   WebSocket handshakes. With other requests, such as for images and frames, they send `Sec-Fetch-Site`, but only
///   over TLS and to loopback addresses.
/// - For browsers, a page whose DNS name resolves to the gateway's address (DNS rebinding) has the gateway's origin.
///   Therefore the host name must be one that can't be in the public DNS, or an allowed one.
package struct BrowserPolicy: Sendable {
    /// The origins, in addition to the gateway's own, whose pages may use the gateway.
    package var allowedOrigins: Set<WebOrigin>
    /// The public host names under which clients may reach the gateway.
    package var allowedHosts: Set<HostName>

    package init(allowedOrigins: Set<WebOrigin> = [], allowedHosts: Set<HostName> = []) {
        self.allowedOrigins = allowedOrigins
        self.allowedHosts = allowedHosts
    }

    /// The origin of an accepted request.
    package enum Sender {
        /// The gateway's own page, or a client that is not a page.
        case own
        /// A page of an allowed origin.
        case page(WebOrigin)
    }

    /// Checks the `Origin` field of a request or handshake. CORS does not apply to the handshakes of WebSockets.
    package func sender(origin text: String?, host: String?) throws(Problem) -> Sender {
        guard let text else { return .own }
        guard let origin = WebOrigin(text) else { throw Problems.originNotAllowed(nil) }
        if let host, origin.isSame(asHost: host) { return .own }
        guard allowedOrigins.contains(origin) else { throw Problems.originNotAllowed(origin) }
        return .page(origin)
    }

    /// Checks that no public DNS name leads to the gateway under the host of a request. Needed only for requests without
    /// credentials: a page of a foreign name has none.
    ///
    /// - Parameter host: nil if the request has none (HTTP/1.0); then it does not come from a browser.
    package func checkHost(_ host: String?) throws(Problem) {
        guard let host else { return }
        guard let name = HostName(authority: host), name.isPrivate || allowedHosts.contains(name) else {
            throw Problems.hostNotAllowed(host)
        }
    }
}

extension Problems {
    /// Returns the refusal of a page because of its origin. The page can read it, and nothing else.
    ///
    /// - Parameter origin: nil if the page has none, or the browser does not send it. Then the page can't read it.
    package static func originNotAllowed(_ origin: WebOrigin?) -> Problem {
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
