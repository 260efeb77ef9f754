import Coaty
import HTTPServer

/// What a client is told: one JSON object, the same in a WebSocket message, in a Server-Sent Event and in a line of NDJSON.
///
/// `{"op":…,"id":…,…}`, where the id is that of the client's own subscription or request, and absent where a connection has
/// one alone.
struct StreamFrame: Sendable {
    /// What kind of frame it is.
    enum Op: String, Sendable {
        case ok, event, response, done, gap, error, pong
    }

    let op: Op
    /// The members behind `op` and `id`, without braces; may be empty.
    let members: [UInt8]
    /// Behind which the client can resume.
    let cursor: StreamCursor?

    init(_ op: Op, members: [UInt8] = [], cursor: StreamCursor? = nil) {
        self.op = op
        self.members = members
        self.cursor = cursor
    }

    /// The frame as JSON.
    func json(id: String? = nil) -> [UInt8] {
        var text = Self.beginning(op, id: id, reserving: members.count)
        if !members.isEmpty {
            text.append(UInt8(ascii: ","))
            text += members
        }
        text.append(UInt8(ascii: "}"))
        return text
    }

    /// `{"op":…,"id":…`, which further members follow.
    ///
    /// - Parameter length: about how long these are, in bytes.
    static func beginning(_ op: Op, id: String?, reserving length: Int) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(length + 128)
        text += #"{"op":""#.utf8
        text += op.rawValue.utf8
        text.append(UInt8(ascii: "\""))
        if let id {
            text += #","id":"#.utf8
            JSONText.append(id, to: &text)
        }
        return text
    }
}

extension StreamFrame {
    /// Why there will be no more frames of a subscription or request.
    enum EndReason: String, Sendable {
        /// As many responses as were asked for have come.
        case limit
        /// The time that responses were awaited is over.
        case timeout
        /// A response was what `until` asks for.
        case until
        /// The client has cancelled it.
        case cancelled
        /// The link to the broker was lost while responses were awaited.
        case offline
        /// What was observed is no longer there.
        case withdrawn
        /// More responses have come than can be kept, or the client reads too slowly and asked to be told so.
        case overflow
    }

    static let ok = StreamFrame(.ok)

    /// A subscription has begun, behind a cursor where it can be resumed there.
    static func ok(_ cursor: StreamCursor?) -> StreamFrame {
        guard let cursor else { return ok }
        return StreamFrame(.ok, members: Array(#""cursor":"\#(cursor)""#.utf8), cursor: cursor)
    }

    static let pong = StreamFrame(.pong)

    static func done(_ reason: EndReason) -> StreamFrame {
        StreamFrame(.done, members: Array(#""reason":"\#(reason.rawValue)""#.utf8))
    }

    /// Tells that frames are missing at this place.
    ///
    /// - Parameters:
    ///   - lost: how many; nil where nobody can know.
    ///   - cursor: behind which the client can resume; nil where it is not known.
    static func gap(lost: Int?, _ cursor: StreamCursor? = nil) -> StreamFrame {
        var members = #""lost":\#(lost.map(String.init) ?? "null")"#
        if let cursor { members += #","cursor":"\#(cursor)""# }
        return StreamFrame(.gap, members: Array(members.utf8), cursor: cursor)
    }

    /// What was wrong with what the client has said: the members of the problem (RFC 9457).
    static func error(_ problem: Problem) -> StreamFrame {
        StreamFrame(.error, members: Array(problem.body.dropFirst().dropLast()))
    }

    /// A response to a request.
    ///
    /// - Parameter milliseconds: the time from the publication of the request.
    static func response<Event: CommunicationEvent>(_ event: Event, milliseconds: Int) -> StreamFrame {
        let payload = event.payload.bytes
        var members: [UInt8] = []
        members.reserveCapacity(payload.count + 96)
        members += #""event":"\#(Event.eventType.name)","sourceId":"#.utf8
        JSONText.append(event.sourceId?.string ?? "", to: &members)
        members += #","ms":\#(milliseconds),"data":"#.utf8
        members += payload
        return StreamFrame(.response, members: members)
    }
}

extension CommunicationEventType {
    /// The event's name in frames and paths.
    var name: String {
        switch self {
        case .advertise: "advertise"
        case .deadvertise: "deadvertise"
        case .channel: "channel"
        case .associate: "associate"
        case .ioValue: "iovalue"
        case .discover: "discover"
        case .resolve: "resolve"
        case .query: "query"
        case .retrieve: "retrieve"
        case .update: "update"
        case .complete: "complete"
        case .call: "call"
        case .return: "return"
        }
    }
}
