import Foundation
import Synchronization
import TestSupport
import Testing

extension ReloadTests {
    /// How a client of the removed token is connected.
    enum Stream: CaseIterable {
        case events, single, multiplexed, ndjson, collected

        /// Reads until the end, and returns what it was.
        func read(_ gateway: GatewayProcess, opened: () -> Void) throws -> String {
            let headers = AccessScene.headers("leaver")
            switch self {
            case .events:
                let stream = try gateway.eventStream("channel?channelId=load&buffer=4096", headers: headers)
                opened()
                var last = ""
                while let event = try stream.next() {
                    last = "\(event.json["op"] ?? "") \(event.json["status"] ?? "")"
                }
                return last
            case .single:
                let stream = try gateway.frameClient("channel?channelId=load&buffer=4096", headers: headers)
                _ = try stream.next()
                opened()
                return "\(try stream.closeCode())"
            case .multiplexed:
                let stream = try gateway.frameClient(headers: headers)
                try stream.subscribe("a", ReloadTests.channel + #","buffer":4096"#)
                try stream.subscribe("b", #""event":"raw","topic":"a/+""#)
                opened()
                return "\(try stream.closeCode())"
            case .ndjson, .collected:
                let connection = try RawConnection(port: gateway.port)
                let accept = self == .ndjson ? "Accept: application/x-ndjson\r\n" : ""
                let fields = headers.map { "\($0.0): \($0.1)\r\n" }.joined()
                try connection.send(
                    "POST /v1/call/o?limit=0&timeout=30000 HTTP/1.1\r\nHost: l\r\n\(fields)\(accept)"
                        + "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
                )
                if self == .collected {
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

        /// What is expected at the end.
        var end: String {
            switch self {
            case .events, .ndjson: "error 401"
            case .single, .multiplexed: "4503"
            case .collected: "401"
            }
        }
    }

    /// Reads on a thread of its own.
    final class Reader: Sendable {
        private let state = Mutex<(isOpen: Bool, end: String?, date: Date)>((false, nil, .distantPast))

        init(_ body: @escaping @Sendable (_ opened: () -> Void) throws -> String) {
            Thread.detachNewThread { [self] in
                let end: String
                do {
                    end = try body { self.state.withLock { $0.isOpen = true } }
                } catch {
                    end = "\(error)"
                }
                state.withLock { ($0.end, $0.date) = (end, Date()) }
            }
        }

        var isOpen: Bool { state.withLock { $0.isOpen } }
        /// What the body has returned, and when.
        var end: (text: String, date: Date)? {
            state.withLock { state in state.end.map { ($0, state.date) } }
        }
    }
}
