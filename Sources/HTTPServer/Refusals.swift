import ProblemDetails

/// The answers that the server sends without calling a handler, built once.
///
/// libmicrohttpd answers some malformed requests itself; see ``HTTPServer``.
final class Refusals: Sendable {
    /// 400: the target is not a path, or an escape in the path or query is malformed, a control character or not UTF-8.
    let malformedTarget: HTTPResponse
    /// 400: the framing is ambiguous (RFC 9112, sections 3.2, 5.1 and 6.3).
    let malformedRequest: HTTPResponse
    /// 404
    let notFound: HTTPResponse
    /// 413
    let contentTooLarge: HTTPResponse
    /// 503: the memory for request bodies is used up.
    let overBudget: HTTPResponse
    /// 421: an upgrade to WebSocket on a kept-alive connection.
    let misdirected: HTTPResponse
    /// 431
    let headerTooLarge: HTTPResponse
    /// 501: a transfer coding other than chunked (RFC 9112, section 6.1).
    let unknownTransferCoding: HTTPResponse
    /// 503: the server accepts no new work. The responses differ in `Retry-After`.
    private let drainings: [HTTPResponse]
    /// 503: the maximum number of suspended requests or streams is reached.
    let overloaded: HTTPResponse

    private let prefix: String

    /// Returns one of the responses to a request while the server drains, so that clients do not all return at the same
    /// time.
    var draining: HTTPResponse { drainings.randomElement() ?? overloaded }

    init(_ configuration: HTTPServer.Configuration) {
        let prefix = configuration.problemTypePrefix
        self.prefix = prefix
        func problem(
            _ name: String,
            _ title: String,
            _ status: Int,
            _ detail: String,
            _ headers: [(name: String, value: String)] = []
        ) -> Problem {
            Problem(type: prefix + name, title: title, status: status, detail: detail, headers: headers)
        }
        let close = (name: "Connection", value: "close")
        let retry = (name: "Retry-After", value: "1")
        malformedTarget = problem(
            "bad-request",
            "Bad request",
            400,
            "The target must be a path. Path and query must be percent-encoded UTF-8 without control characters."
        ).response()
        malformedRequest = problem(
            "bad-request",
            "Bad request",
            400,
            "The header fields define the length of the body ambiguously.",
            [close]
        ).response()
        notFound = problem("not-found", "Not found", 404, "There is nothing at this path.").response()
        contentTooLarge = problem(
            "content-too-large",
            "Content too large",
            413,
            "The body is larger than \(configuration.maximumBodySize) bytes, the limit \(configuration.sizeNames.body).",
            [close]
        ).response()
        overBudget = problem(
            "too-much-memory",
            "Service unavailable",
            503,
            "There is no memory left for the body of this request.",
            [close, retry]
        ).response()
        misdirected = problem(
            "misdirected-request",
            "Misdirected request",
            421,
            "A WebSocket handshake must be the first request of its connection. Open a new connection.",
            [close]
        ).response()
        headerTooLarge = problem(
            "header-fields-too-large",
            "Header fields too large",
            431,
            "The request line and header fields are larger than \(configuration.maximumHeaderSize) bytes, the limit"
                + " \(configuration.sizeNames.header).",
            [close]
        ).response()
        unknownTransferCoding = problem(
            "unknown-transfer-coding",
            "Unknown transfer coding",
            501,
            "The server supports no transfer coding except chunked.",
            [close]
        ).response()
        // 0 counts as 1.
        let seconds = configuration.drainRetryAfter
        let delays = max(1, seconds.lowerBound)...max(1, seconds.upperBound)
        drainings = delays.map { seconds in
            let retry = (name: "Retry-After", value: "\(seconds)")
            return problem("shutting-down", "Service unavailable", 503, "The server is shutting down.", [close, retry])
                .response()
        }
        overloaded = problem(
            "too-many-pending-requests",
            "Service unavailable",
            503,
            "Too many requests are pending.",
            [retry]
        ).response()
    }

    /// Returns the response 405 with `Allow`.
    func methodNotAllowed(allow: String) -> HTTPResponse {
        Problem(
            type: prefix + "method-not-allowed",
            title: "Method not allowed",
            status: 405,
            detail: "This path allows \(allow).",
            headers: [("Allow", allow)]
        ).response()
    }
}
