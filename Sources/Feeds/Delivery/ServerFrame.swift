package import Access
import Base
package import Coaty
package import ProblemDetails

/// Frame sent to a client: one JSON object, the same in a WebSocket message, in a Server-Sent Event and in a line of
/// NDJSON.
///
/// `{"op":…,"id":…,…}`. The id is the one that the client gave its subscription or request. It is absent if the
/// connection has only one.
package struct ServerFrame: Sendable {
    package enum Op: String, Sendable {
        case ok, event, response, done, gap, error, pong, notice
    }

    let op: Op
    /// JSON members after `op` and `id`, without braces; may be empty.
    package let members: [UInt8]
    /// Cursor after which the client can resume; nil if it can't resume here.
    let cursor: FeedCursor?

    package init(_ op: Op, members: [UInt8] = [], cursor: FeedCursor? = nil) {
        self.op = op
        self.members = members
        self.cursor = cursor
    }

    /// Returns `{"op":…,"id":…`, to which the caller appends members and the closing brace.
    ///
    /// - Parameter length: approximate length of these members, in bytes.
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

extension ServerFrame {
    /// Reason for the end of a subscription or request.
    package enum EndReason: String, Sendable {
        /// The request received as many responses as its limit.
        case limit
        /// The request's timeout expired.
        case timeout
        /// A response matched the request's `until` condition.
        case until
        /// The client cancelled the request.
        case cancelled
        /// The broker connection was lost while the request was pending.
        case offline
        /// The observed resource no longer exists.
        case withdrawn
        /// There is no space to queue more responses, or a subscription with `overflow=close` has overflowed.
        case overflow
    }

    /// Reason for a gap.
    enum GapFrameReason: String, Sendable {
        /// The events could not be read.
        case invalid
        /// The client's filter is too expensive for the event.
        case filterSteps = "filter-steps"
    }

    package static let ok = ServerFrame(.ok)

    /// Returns the confirmation of a subscription, with the cursor after which the client can resume, if there is one.
    static func ok(_ cursor: FeedCursor?) -> ServerFrame {
        guard let cursor else { return ok }
        return ServerFrame(.ok, members: Array(#""cursor":"\#(cursor)""#.utf8), cursor: cursor)
    }

    /// Returns the confirmation of an authentication, with the time at which the token expires and the milliseconds
    /// until then.
    package static func authenticated(_ validity: Validity?) -> ServerFrame {
        guard let validity else { return ok }
        let rest = max(0, validity.expires - Int(CoatyTimestamp.nowMillis()))
        return ServerFrame(.ok, members: Array(#""expires":\#(validity.expires),"validFor":\#(rest)"#.utf8))
    }

    package static let pong = ServerFrame(.pong)

    /// - Parameter isFiltered: whether there were responses that the client must not see.
    package static func done(_ reason: EndReason, isFiltered: Bool = false) -> ServerFrame {
        ServerFrame(
            .done,
            members: Array(#""reason":"\#(reason.rawValue)"\#(isFiltered ? #","filtered":true"# : "")"#.utf8)
        )
    }

    /// Returns a gap, which reports that events are missing at this point.
    ///
    /// - Parameters:
    ///   - dropped: number of missing events; nil if it is unknown.
    ///   - reason: nil if the events did not arrive, or the client has read too slowly.
    ///   - cursor: cursor after which the client can resume; nil if it is unknown.
    static func gap(dropped: Int?, reason: GapFrameReason? = nil, _ cursor: FeedCursor? = nil) -> ServerFrame {
        var members = #""dropped":\#(dropped.map(String.init) ?? "null")"#
        if let reason { members += #","reason":"\#(reason.rawValue)""# }
        if let cursor { members += #","cursor":"\#(cursor)""# }
        return ServerFrame(.gap, members: Array(members.utf8), cursor: cursor)
    }

    /// Returns an error with the members of a problem (RFC 9457).
    package static func error(_ problem: Problem) -> ServerFrame {
        ServerFrame(.error, members: Array(problem.body.dropFirst().dropLast()))
    }

    /// Returns the frame of one response to a request.
    ///
    /// - Parameters:
    ///   - payload: the payload, or its visible part.
    ///   - milliseconds: time since the request was published.
    package static func response(
        _ type: CommunicationEventType,
        from sourceId: CoatyUUID?,
        _ payload: Payload,
        milliseconds: Int
    ) -> ServerFrame {
        let payload = payload.bytes
        var members: [UInt8] = []
        members.reserveCapacity(payload.count + 96)
        members += #""event":"\#(type.name)","sourceId":"#.utf8
        JSONText.append(sourceId?.string ?? "", to: &members)
        members += #","ms":\#(milliseconds),"data":"#.utf8
        members += payload
        return ServerFrame(.response, members: members)
    }
}

extension CommunicationEventType {
    /// The event's name in frames and paths.
    package var name: String {
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

extension ServerFrame {
    /// Reports whether the gateway accepts new work.
    package enum Notice: String, Sendable {
        case paused, active
    }

    static func notice(_ notice: Notice) -> ServerFrame {
        ServerFrame(.notice, members: Array(#""state":"\#(notice.rawValue)""#.utf8))
    }
}
