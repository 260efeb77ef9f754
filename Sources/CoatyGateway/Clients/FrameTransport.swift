import Base
import HTTPServer
import Network
import WebSocketServer

/// A connection that carries frames to one client.
protocol FrameTransport: Sendable {
    /// Queues a frame if the connection has space. If it returns `full`, the frame is not queued, and
    /// ``OutboundQueue/pump()`` is called when there is space again.
    func offer(_ frame: OutboundFrame) -> FrameOffer
    /// Queues the first frames of a batch, as many as the connection has space for, like ``offer(_:)-(OutboundFrame)``.
    ///
    /// - Returns: the number of queued frames, and `queued` if these are all; otherwise the reason why the next one is
    ///   not queued.
    func offer(_ batch: ObjectBatch) -> (number: Int, FrameOffer)
    /// Ends the connection after the queued frames, because its only subscription or request has ended, or an operator
    /// has disconnected it.
    func finish(_ end: ConnectionEnd)
    /// Ends the connection of a client that does not read the replies to its frames.
    func abort()
}

/// The result of offering a frame to a connection.
enum FrameOffer: Sendable {
    case queued, full, closed

    init(_ offer: WebSocketConnection.Offer) {
        switch offer {
        case .queued: self = .queued
        case .full: self = .full
        case .closed: self = .closed
        }
    }

    init(_ result: HTTPStream.WriteResult) {
        switch result {
        case .queued: self = .queued
        case .full: self = .full
        case .closed: self = .closed
        }
    }
}

/// A frame to one client: one JSON object, followed by octets if it is binary.
struct OutboundFrame {
    let op: ServerFrame.Op
    /// The cursor after which the client can resume; nil if the frame has none.
    let cursor: FeedCursor?
    private let id: String?
    /// The kind of the change of an event; nil if it is none.
    private let change: ObjectChange.Kind?
    private let isLatest: Bool
    /// The rest of an event, which is shared with other clients.
    let body: EventBody?
    /// The rest of another frame, in parts.
    private let rest: [[UInt8]]
    /// Keeps the memory of the frame charged until it is sent.
    let charge: Charge?

    /// - Parameter id: the client's id of the subscription or request, or of the frame that this frame replies to.
    init(_ frame: ServerFrame, id: String?, _ charge: Charge? = nil) {
        self.charge = charge
        self.id = id
        op = frame.op
        cursor = frame.cursor
        (change, isLatest, body) = (nil, false, nil)
        rest = [frame.members, [UInt8(ascii: "}")]]
    }

    init(_ event: QueuedEvent, id: String?) {
        self.id = id
        op = .event
        cursor = event.cursor
        (change, isLatest, body) = (event.change, event.isLatest, event.body)
        rest = []
        charge = event.charge
    }

    /// The beginning of the text, which differs between clients. Each call builds it.
    var prefix: [UInt8] {
        var text = ServerFrame.beginning(op, id: id, reserving: 64)
        guard body != nil else {
            if rest.first?.isEmpty == false { text.append(UInt8(ascii: ",")) }
            return text
        }
        if let change { text += #","change":"\#(change.rawValue)""#.utf8 }
        if isLatest { text += #","latest":true"#.utf8 }
        if let cursor { text += #","cursor":"\#(cursor)""#.utf8 }
        text.append(UInt8(ascii: ","))
        return text
    }

    /// Length of all parts, in bytes.
    var count: Int { prefix.count + (body?.count ?? rest.reduce(0) { $0 + $1.count }) }

    /// The parts of the frame, which must be sent without anything in between.
    var parts: [[UInt8]] { [prefix] + (body?.parts ?? rest) }

    /// The parts of the frame as one line of text.
    var lines: [[UInt8]] { [prefix] + (body?.lines ?? rest.map(JSONText.line)) }

    var webSocketFrame: WebSocketFrame {
        guard let body else { return WebSocketFrame(utf8Parts: parts) }
        return body.webSocketFrame(for: receiver) { prefix }
    }

    /// The frame as one of the Server-Sent Events, in parts.
    var eventStreamFrame: [[UInt8]] {
        body?.eventStreamFrame(for: receiver, buildEventStreamFrame) ?? buildEventStreamFrame()
    }

    private var receiver: EventBody.Receiver {
        EventBody.Receiver(id: id, cursor: cursor, change: change, isLatest: isLatest)
    }

    private func buildEventStreamFrame() -> [[UInt8]] {
        let text = EventStreamTransport.beginning(op, cursor) + prefix
        return [text] + (body?.lines ?? rest.map(JSONText.line)) + [EventStreamTransport.end]
    }
}

extension QueuedItem {
    /// An item in the form that is offered to a connection.
    enum Outbound {
        case frame(OutboundFrame)
        case batch(ObjectBatch)
    }

    /// Returns the item as a frame of a subscription or request, or as several.
    func outbound(to subscription: ClientSubscription) -> Outbound {
        switch self {
        case .gap(let count, let cursor): .frame(OutboundFrame(.gap(dropped: count, cursor), id: subscription.id))
        case .invalid(let count, let cursor):
            .frame(OutboundFrame(.gap(dropped: count, reason: .invalid, cursor), id: subscription.id))
        case .leftOut(let cursor):
            .frame(OutboundFrame(.gap(dropped: nil, reason: .filterSteps, cursor), id: subscription.id))
        case .response(let frame, let charge): .frame(OutboundFrame(frame, id: subscription.id, charge))
        case .event(let event): .frame(OutboundFrame(event, id: subscription.id))
        case .objects(let batch): .batch(batch)
        }
    }
}

/// A WebSocket connection. Each frame is one message.
struct WebSocketTransport: FrameTransport {
    let connection: WebSocketConnection

    func offer(_ frame: OutboundFrame) -> FrameOffer {
        FrameOffer(connection.offer(frame.webSocketFrame, holding: frame.charge))
    }

    func offer(_ batch: ObjectBatch) -> (number: Int, FrameOffer) {
        let frames = batch.frames.map { WebSocketFrame(utf8Parts: [$0]) }
        let (number, answer) = connection.offer(frames, holding: batch.charge)
        return (number, FrameOffer(answer))
    }

    func finish(_ end: ConnectionEnd) { connection.close(CloseCode(end), end.text) }

    func abort() { connection.close(.slowClient, "the client asks for more than it reads") }
}

/// An HTTP response with NDJSON. Each frame is one line.
struct LineTransport: FrameTransport {
    let stream: HTTPStream

    static let headers = [(name: "Content-Type", value: "application/x-ndjson"), ("Cache-Control", "no-store")]

    private static let end = Array("\n".utf8)

    func offer(_ frame: OutboundFrame) -> FrameOffer {
        FrameOffer(stream.write(frame.lines + [Self.end], holding: frame.charge))
    }

    func offer(_ batch: ObjectBatch) -> (number: Int, FrameOffer) { stream.offer(batch, end: Self.end) }

    func finish(_ end: ConnectionEnd) { stream.finish() }

    func abort() { stream.finish() }
}

/// A stream of Server-Sent Events (HTML Living Standard, 9.2). The frame's op is the event's name, and its cursor is
/// the id.
struct EventStreamTransport: FrameTransport {
    let stream: HTTPStream

    /// A comment without text, which clients ignore.
    static let heartbeat = Array(":\n\n".utf8)
    fileprivate static let end = Array("\n\n".utf8)

    func offer(_ frame: OutboundFrame) -> FrameOffer {
        FrameOffer(stream.write(frame.eventStreamFrame, holding: frame.charge))
    }

    func offer(_ batch: ObjectBatch) -> (number: Int, FrameOffer) {
        let last = batch.cursor.map { Self.beginning(.event, $0) }
        return stream.offer(batch, beginning: Self.beginning(.event, nil), last: last, end: Self.end)
    }

    /// Returns the text of an event before the JSON of its frame.
    fileprivate static func beginning(_ op: ServerFrame.Op, _ cursor: FeedCursor?) -> [UInt8] {
        var text: [UInt8] = []
        if let cursor { text += "id: \(cursor)\n".utf8 }
        // The browser's EventSource dispatches its own `error` event.
        let name = op == .error ? "problem" : op.rawValue
        text += "event: \(name)\ndata: ".utf8
        return text
    }

    func finish(_ end: ConnectionEnd) { stream.finish() }

    func abort() { stream.finish() }
}

extension HTTPStream {
    /// Queues either all frames of a batch as lines, or none. They are joined first: the stream takes and releases each
    /// part separately, which takes longer than copying it.
    ///
    /// - Parameters:
    ///   - beginning: precedes each line.
    ///   - last: precedes the last line; nil for `beginning`.
    ///   - end: follows each line.
    fileprivate func offer(
        _ batch: ObjectBatch,
        beginning: [UInt8] = [],
        last: [UInt8]? = nil,
        end: [UInt8]
    ) -> (number: Int, FrameOffer) {
        var text: [UInt8] = []
        text.reserveCapacity(batch.count + batch.frames.count * (beginning.count + end.count) + (last?.count ?? 0))
        let lastIndex = batch.frames.endIndex - 1
        for (index, frame) in zip(batch.frames.indices, batch.frames) {
            text += index == lastIndex ? last ?? beginning : beginning
            text += JSONText.line(frame)
            text += end
        }
        let answer = FrameOffer(write([text], holding: batch.charge))
        return (answer == .queued ? batch.frames.count : 0, answer)
    }
}
