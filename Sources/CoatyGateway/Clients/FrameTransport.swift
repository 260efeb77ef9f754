import HTTPServer
import WebSocketServer

/// A connection that carries frames to one client.
protocol FrameTransport: Sendable {
    /// Queues a frame if the connection has room. If it returns `full`, the frame is not queued, and ``OutboundQueue/pump()``
    /// is called when there is room again.
    func offer(_ frame: OutboundFrame) -> FrameOffer
    /// Ends the connection after the queued frames, because its only subscription or request has ended.
    func finish(_ end: ConnectionEnd)
    /// Ends the connection of a client that does not read the replies to its frames.
    func abort()
}

/// The result of offering a frame to a connection.
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

/// A frame to one client.
struct OutboundFrame {
    enum Content {
        case frame(ServerFrame)
        case event(EventText)
    }

    let content: Content
    /// The client's id of the subscription or request, or of the frame that this frame replies to.
    let id: String?
    /// The cache for a frame that several clients receive with the same bytes; nil if only this client receives it.
    var shared: SharedFrame?

    /// The frame as JSON.
    var json: [UInt8] {
        switch content {
        case .frame(let frame): frame.json(id: id)
        case .event(let event): event.json(id: id)
        }
    }

    /// The octets to send after the JSON; nil if there are none.
    var octets: [UInt8]? {
        if case .event(let event) = content { event.octets } else { nil }
    }

    var op: ServerFrame.Op {
        switch content {
        case .frame(let frame): frame.op
        case .event: .event
        }
    }

    var cursor: FeedCursor? {
        switch content {
        case .frame(let frame): frame.cursor
        case .event(let event): event.cursor
        }
    }
}

extension QueuedItem {
    /// Returns the item as a frame of a subscription or request.
    ///
    /// - Parameter shared: the cache for the frame. Used only if the frame does not depend on the subscription.
    func outbound(to subscription: ClientSubscription, _ shared: SharedFrame? = nil) -> OutboundFrame {
        switch self {
        case .gap(let count, let cursor):
            return OutboundFrame(content: .frame(.gap(dropped: count, cursor)), id: subscription.id)
        case .response(let frame): return OutboundFrame(content: .frame(frame), id: subscription.id)
        case .event(let record, let event, let change):
            let options = subscription.options
            let text = EventText(
                event: event,
                cursor: record.cursor,
                change: change,
                fields: options.fields,
                encoding: options.encoding
            )
            let isShared =
                subscription.id == nil && options.fields == nil && options.throttle == nil
                && options.encoding == .base64
                && change == nil
            return OutboundFrame(content: .event(text), id: subscription.id, shared: isShared ? shared : nil)
        }
    }
}

/// A WebSocket connection. Each frame is one message.
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

    func finish(_ end: ConnectionEnd) { connection.close(CloseCode(end), end.text) }

    func abort() { connection.close(.slowClient, "the client asks for more than it reads") }
}

/// An HTTP response with NDJSON. Each frame is one line.
struct LineTransport: FrameTransport {
    let stream: HTTPStream

    static let headers = [(name: "Content-Type", value: "application/x-ndjson"), ("Cache-Control", "no-store")]

    func offer(_ frame: OutboundFrame) -> FrameOffer { FrameOffer(stream.write(JSONText.line(frame.json) + "\n".utf8)) }

    func finish(_ end: ConnectionEnd) { stream.finish() }

    func abort() { stream.finish() }
}

/// A stream of Server-Sent Events (HTML Living Standard, 9.2). The frame's op is the event's name, and its cursor is the id.
struct EventStreamTransport: FrameTransport {
    let stream: HTTPStream

    /// A comment without text, which clients ignore.
    static let heartbeat = Array(":\n\n".utf8)

    func offer(_ frame: OutboundFrame) -> FrameOffer {
        var text: [UInt8] = []
        if let cursor = frame.cursor { text += "id: \(cursor)\n".utf8 }
        // The browser's EventSource dispatches its own `error` event.
        let name = frame.op == .error ? "problem" : frame.op.rawValue
        text += "event: \(name)\ndata: ".utf8
        text += JSONText.line(frame.json)
        text += "\n\n".utf8
        return FrameOffer(stream.write(text))
    }

    func finish(_ end: ConnectionEnd) { stream.finish() }

    func abort() { stream.finish() }
}
