import HTTPServer
import WebSocketServer

/// Carries frames to one client.
protocol FrameTransport: Sendable {
    /// Queues a frame. Where there is no room nothing is queued, and ``Outlet/pump()`` is called when there is.
    func offer(_ frame: OutboundFrame) -> FrameOffer
    /// Ends the connection behind what is queued, because its only subscription has ended.
    func finish(_ reason: StreamFrame.EndReason)
    /// Ends the connection of a client that does not read what it asked for.
    func abort()
}

/// What became of a frame.
enum FrameOffer: Sendable {
    case queued, full, closed

    init(_ result: HTTPStream.WriteResult) {
        switch result {
        case .queued: self = .queued
        case .full: self = .full
        case .closed: self = .closed
        }
    }
}

/// A frame on its way to one client.
struct OutboundFrame {
    enum Content {
        case frame(StreamFrame)
        case event(EventText)
    }

    let content: Content
    /// The client's name for what the frame belongs to.
    let id: String?
    /// What all who get the same bytes share; nil where the frame is this client's own.
    var shared: SharedFrame?

    /// The frame as JSON.
    var json: [UInt8] {
        switch content {
        case .frame(let frame): frame.json(id: id)
        case .event(let event): event.json(id: id)
        }
    }

    /// The octets that stand behind the JSON.
    var octets: [UInt8]? {
        if case .event(let event) = content { event.octets } else { nil }
    }

    var op: StreamFrame.Op {
        switch content {
        case .frame(let frame): frame.op
        case .event: .event
        }
    }

    var cursor: StreamCursor? {
        switch content {
        case .frame(let frame): frame.cursor
        case .event(let event): event.cursor
        }
    }
}

extension LaneItem {
    /// The item as a frame of a lane.
    ///
    /// - Parameter shared: what all who get the same bytes share.
    func outbound(to lane: Lane, _ shared: SharedFrame? = nil) -> OutboundFrame {
        switch self {
        case .gap(let count, let cursor):
            return OutboundFrame(content: .frame(.gap(lost: count, cursor)), id: lane.id)
        case .response(let frame): return OutboundFrame(content: .frame(frame), id: lane.id)
        case .event(let record, let event, let change):
            let options = lane.options
            let text = EventText(
                event: event,
                cursor: record.cursor,
                change: change,
                fields: options.fields,
                encoding: options.encoding
            )
            let isShared =
                lane.id == nil && options.fields == nil && options.throttle == nil && options.encoding == .base64
                && change == nil
            return OutboundFrame(content: .event(text), id: lane.id, shared: isShared ? shared : nil)
        }
    }
}

/// Frames as WebSocket messages.
struct WebSocketTransport: FrameTransport {
    let connection: WebSocketConnection

    func offer(_ frame: OutboundFrame) -> FrameOffer {
        switch connection.offer(frame.shared?.get { message(frame) } ?? message(frame)) {
        case .queued: .queued
        case .full: .full
        case .closed: .closed
        }
    }

    private func message(_ frame: OutboundFrame) -> WebSocketFrame {
        guard let octets = frame.octets else { return WebSocketFrame(utf8: frame.json) }
        return WebSocketFrame(binary: frame.json + [UInt8(ascii: "\n")] + octets)
    }

    func finish(_ reason: StreamFrame.EndReason) {
        switch reason {
        case .overflow: connection.close(code: 1013, reason: "the client reads too slowly")
        default: connection.close(code: 1001, reason: reason.rawValue)
        }
    }

    func abort() { connection.close(code: 1008, reason: "the client asks for more than it reads") }
}

/// Frames as lines of NDJSON.
struct LineTransport: FrameTransport {
    let stream: HTTPStream

    static let headers = [(name: "Content-Type", value: "application/x-ndjson"), ("Cache-Control", "no-store")]

    func offer(_ frame: OutboundFrame) -> FrameOffer { FrameOffer(stream.write(JSONText.line(frame.json) + "\n".utf8)) }

    func finish(_ reason: StreamFrame.EndReason) { stream.finish() }

    func abort() { stream.finish() }
}

/// Frames as Server-Sent Events (HTML Living Standard, 9.2): the frame's op is the event's name, and its cursor the id.
struct EventStreamTransport: FrameTransport {
    let stream: HTTPStream

    /// What shows whether the client is still there.
    static let heartbeat = Array(":\n\n".utf8)

    func offer(_ frame: OutboundFrame) -> FrameOffer {
        var text: [UInt8] = []
        if let cursor = frame.cursor { text += "id: \(cursor)\n".utf8 }
        // A browser's EventSource has an event `error` of its own.
        let name = frame.op == .error ? "problem" : frame.op.rawValue
        text += "event: \(name)\ndata: ".utf8
        text += JSONText.line(frame.json)
        text += "\n\n".utf8
        return FrameOffer(stream.write(text))
    }

    func finish(_ reason: StreamFrame.EndReason) { stream.finish() }

    func abort() { stream.finish() }
}
