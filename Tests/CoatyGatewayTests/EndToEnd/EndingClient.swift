import Foundation
import TestSupport
import Testing

/// A client on each transport whose access ends while it is connected.
struct EndingClient {
    let gateway: GatewayProcess
    let headers: [(String, String)]
    /// The token in the first frame of a multiplexed connection; nil if the client authenticates by header.
    var token: String?
    let channel: String
    /// Further subscriptions of a multiplexed connection.
    var subscriptions: [String] = []

    /// The transport of the client.
    enum Stream: CaseIterable {
        case events, single, multiplexed, ndjson, collected

        /// Returns the expected result of ``EndingClient/read(_:opened:)``.
        ///
        /// - Parameter closeCode: the close code of WebSockets.
        func end(closeCode: Int) -> String {
            switch self {
            case .events, .ndjson: "error 401"
            case .single, .multiplexed: "\(closeCode)"
            case .collected: "401"
            }
        }
    }

    /// Opens a stream, reads until its end, and returns the kind of end.
    func read(_ stream: Stream, opened: () -> Void) throws -> String {
        let target = "channel?channelId=\(channel)&buffer=4096"
        switch stream {
        case .events:
            let stream = try gateway.eventStream(target, headers: headers)
            opened()
            var last = ""
            while let event = try stream.next() { last = "\(event.json["op"] ?? "") \(event.json["status"] ?? "")" }
            return last
        case .single:
            let stream = try gateway.frameClient(target, headers: headers)
            _ = try stream.next()
            opened()
            return "\(try stream.closeCode())"
        case .multiplexed:
            let stream = try gateway.frameClient(headers: token == nil ? headers : [])
            if let token { #expect(try stream.ask("authenticate", #""token":"\#(token)""#).op == "ok") }
            let first = #""event":"channel","channelId":"\#(channel)","buffer":4096"#
            for (number, members) in ([first] + subscriptions).enumerated() {
                try stream.subscribe("\(number)", members)
            }
            opened()
            return "\(try stream.closeCode())"
        case .ndjson, .collected: return try call(isStreamed: stream == .ndjson, opened)
        }
    }

    /// Calls an operation that no agent answers.
    private func call(isStreamed: Bool, _ opened: () -> Void) throws -> String {
        let connection = try RawConnection(port: gateway.port)
        let accept = isStreamed ? "Accept: application/x-ndjson\r\n" : ""
        let fields = headers.map { "\($0.0): \($0.1)\r\n" }.joined()
        try connection.send(
            "POST /v1/call/o?limit=0&timeout=30000 HTTP/1.1\r\nHost: l\r\n\(fields)\(accept)"
                + "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
        )
        guard isStreamed else {
            opened()
            return "\(try connection.readResponse().status)"
        }
        #expect(try connection.readHead().status == 200)
        opened()
        var text: [UInt8] = []
        while case let chunk = try connection.readChunk(), !chunk.isEmpty { text += chunk }
        let line = text.split(separator: UInt8(ascii: "\n")).last.map { Data($0) } ?? Data()
        let frame = try JSONSerialization.jsonObject(with: line) as? [String: Any]
        return "\(frame?["op"] ?? "") \(frame?["status"] ?? "")"
    }
}
