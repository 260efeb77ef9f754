package import Base
import Network
package import WebSocketServer

/// A frame to one client: one JSON object, followed by octets if it is binary.
package struct OutboundFrame {
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
    package let charge: Charge?

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
    package var lines: [[UInt8]] { [prefix] + (body?.lines ?? rest.map(JSONText.line)) }

    package var webSocketFrame: WebSocketFrame {
        guard let body else { return WebSocketFrame(utf8Parts: parts) }
        return body.webSocketFrame(for: receiver) { prefix }
    }

    /// The frame as one of the Server-Sent Events, in parts.
    package var eventStreamFrame: [[UInt8]] {
        body?.eventStreamFrame(for: receiver, buildEventStreamFrame) ?? buildEventStreamFrame()
    }

    private var receiver: EventBody.Receiver {
        EventBody.Receiver(id: id, cursor: cursor, change: change, isLatest: isLatest)
    }

    private func buildEventStreamFrame() -> [[UInt8]] {
        let text = Self.eventStreamBeginning(op, cursor) + prefix
        return [text] + (body?.lines ?? rest.map(JSONText.line)) + [Self.eventStreamEnd]
    }

    // MARK: - Server-Sent Events

    /// The text after the JSON of a frame.
    package static let eventStreamEnd = Array("\n\n".utf8)

    /// Returns the text of an event before the JSON of its frame.
    package static func eventStreamBeginning(_ op: ServerFrame.Op, _ cursor: FeedCursor?) -> [UInt8] {
        var text: [UInt8] = []
        if let cursor { text += "id: \(cursor)\n".utf8 }
        // The browser's EventSource dispatches its own `error` event.
        let name = op == .error ? "problem" : op.rawValue
        text += "event: \(name)\ndata: ".utf8
        return text
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
