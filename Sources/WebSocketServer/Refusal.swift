import CWebSockets

/// An HTTP response to a request that does not become a WebSocket; the connection closes after it.
struct Refusal {
    var status: Int
    var headers: [(String, String)]
    var body: [UInt8]

    /// Returns a refusal with problem details (RFC 9457).
    static func problem(
        _ name: String,
        status: Int,
        title: String,
        headers: [(String, String)] = [],
        configuration: WebSocketServer.Configuration
    ) -> Refusal {
        let body =
            #"{"type":"\#(configuration.problemTypePrefix)\#(name)","title":"\#(title)","status":\#(status)}"#
        return Refusal(
            status: status,
            headers: [("Content-Type", "application/problem+json")] + headers,
            body: Array(body.utf8)
        )
    }

    /// Writes the response. Service thread only. Head and body are one write: libwebsockets keeps the bytes that the
    /// socket does not accept, and closes after them.
    func write(to wsi: OpaquePointer, omittingBody: Bool) {
        var response = [UInt8](repeating: 0, count: cws_headroom())
        response += "HTTP/1.1 \(status) \(Self.reason(status))\r\n".utf8
        for (name, value) in headers {
            response += "\(Self.line(name)): \(Self.line(value))\r\n".utf8
        }
        let hasUpgrade = headers.contains { $0.0.lowercased() == "upgrade" }
        response += "Content-Length: \(body.count)\r\nConnection: \(hasUpgrade ? "upgrade, " : "")close\r\n\r\n".utf8
        if !omittingBody {
            response += body
        }
        response.withUnsafeMutableBufferPointer { buffer in
            guard let start = buffer.baseAddress?.advanced(by: cws_headroom()) else { return }
            lws_write(wsi, start, buffer.count - cws_headroom(), LWS_WRITE_HTTP_HEADERS)
        }
    }

    /// Returns a field name or value that cannot end its line.
    private static func line(_ text: String) -> String {
        String(text.unicodeScalars.map { $0 == "\r" || $0 == "\n" || $0 == "\0" ? " " : Character($0) })
    }

    /// Returns the phrase of a status (RFC 9110, 15); it may be empty (RFC 9112, 4).
    private static func reason(_ status: Int) -> String {
        switch status {
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 409: "Conflict"
        case 421: "Misdirected Request"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 500: "Internal Server Error"
        case 503: "Service Unavailable"
        default: ""
        }
    }
}
