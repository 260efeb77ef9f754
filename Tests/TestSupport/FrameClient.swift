public import Foundation

/// A client of `/v1/ws`, or of a stream with one subscription, that sends and receives frames.
///
/// All frames go to the ``FrameLog``, which checks that frames accepted by the gateway are valid.
public final class FrameClient {
    /// A frame from the gateway.
    public struct Frame: CustomStringConvertible {
        /// The frame as a JSON object.
        public let json: [String: Any]
        /// The frame's JSON text.
        public let text: String
        /// The octets after the text of a binary message.
        public let octets: [UInt8]?

        /// The member `op`.
        public var op: String { json["op"] as? String ?? "" }
        /// The member `id`.
        public var id: String? { json["id"] as? String }
        /// The member `data`.
        public var data: [String: Any] { json["data"] as? [String: Any] ?? [:] }
        /// The object in the data.
        public var object: [String: Any] { data["object"] as? [String: Any] ?? [:] }
        /// Returns the text member of this name.
        public subscript(name: String) -> String? { json[name] as? String }

        /// The frame's text.
        public var description: String { text }
    }

    /// A reason why a wait failed.
    public enum Failure: Error {
        /// The connection was closed.
        case closed(code: UInt16, reason: String)
        /// The expected frame did not arrive. Has the received frames that no call has taken.
        case inVain(String, [String])
    }

    /// The connection, for messages that are not frames.
    public let socket: WebSocketClient
    /// All received frames.
    public private(set) var received: [Frame] = []
    /// Received frames that no call has taken.
    private var pending: [Frame] = []
    /// Sent frames that have no answer yet, by id.
    private var unanswered: [String: String] = [:]
    private var lastId = 0

    /// Opens a connection.
    public init(
        port: UInt16,
        path: String = "/v1/ws",
        receiveBuffer: Int32? = nil,
        headers: [(String, String)] = []
    ) throws {
        socket = try WebSocketClient(port: port, receiveBuffer: receiveBuffer)
        let response = try socket.shakeHands(path: path, headers: headers)
        guard response.status == 101 else { throw WebSocketClient.Failure.refused(response) }
    }

    // MARK: - Sending

    /// Sends a frame.
    public func send(_ text: String) throws {
        let json = (try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? [String: Any]
        if let id = json?["id"] as? String { unanswered[id] = text }
        try socket.sendText(text)
    }

    /// Sends a frame and waits for its answer: `ok`, `error` or `pong` with the same id.
    ///
    /// - Parameter members: the members besides `op` and `id`, as JSON without braces.
    @discardableResult
    public func ask(_ op: String, id: String? = nil, _ members: String = "") throws -> Frame {
        lastId += 1
        let id = id ?? "#\(lastId)"
        try send(#"{"op":"\#(op)","id":"\#(id)"\#(members.isEmpty ? "" : ",")\#(members)}"#)
        return try next("the answer to \(op) \(id)") { $0.id == id && ["ok", "error", "pong"].contains($0.op) }
    }

    // MARK: - Receiving

    /// Returns the next frame that matches; earlier frames stay available to other calls.
    public func next(
        _ what: String = "a frame",
        within seconds: TimeInterval = 30,
        where matches: (Frame) -> Bool = { _ in true }
    ) throws -> Frame {
        if let index = pending.firstIndex(where: matches) { return pending.remove(at: index) }
        let deadline = Date(timeIntervalSinceNow: seconds)
        while true {
            let frame: Frame
            do {
                frame = try receive(deadline)
            } catch WebSocketClient.Failure.timedOut {
                throw Failure.inVain(what, pending.map(\.text))
            }
            if matches(frame) { return frame }
            pending.append(frame)
        }
    }

    /// Returns the next frame of a subscription or request.
    public func next(of id: String, _ op: String? = nil, within seconds: TimeInterval = 30) throws -> Frame {
        try next("\(op ?? "a frame") of \(id)", within: seconds) { $0.id == id && (op ?? $0.op) == $0.op }
    }

    /// Removes and returns the frames of a subscription that have already been received.
    public func takeReceived(of id: String) -> [Frame] {
        defer { pending.removeAll { $0.id == id } }
        return pending.filter { $0.id == id }
    }

    /// Reads until the connection is closed, and returns the code.
    public func closeCode(within seconds: TimeInterval = 30) throws -> UInt16 {
        let deadline = Date(timeIntervalSinceNow: seconds)
        do {
            while true { pending.append(try receive(deadline)) }
        } catch Failure.closed(let code, _) {
            return code
        }
    }

    private func receive(_ deadline: Date) throws -> Frame {
        while true {
            switch try socket.receive(deadline: deadline) {
            case .text(let text): return try note(Array(text.utf8), octets: nil)
            case .binary(let bytes):
                let text = bytes.prefix { $0 != UInt8(ascii: "\n") }
                return try note(Array(text), octets: Array(bytes.dropFirst(text.count + 1)))
            case .ping(let payload): try socket.sendPong(payload)
            case .pong: continue
            case .close(let code, let reason): throw Failure.closed(code: code, reason: reason)
            }
        }
    }

    private func note(_ bytes: [UInt8], octets: [UInt8]?) throws -> Frame {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let json = try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any] else {
            throw WebSocketClient.Failure.malformed(text)
        }
        let frame = Frame(json: json, text: text, octets: octets)
        FrameLog.shared.received(text)
        if let id = frame.id, ["ok", "error", "pong"].contains(frame.op), let sent = unanswered.removeValue(forKey: id),
            frame.op != "error"
        {
            FrameLog.shared.sent(sent, isValid: true)
        }
        received.append(frame)
        return frame
    }
}
