import Foundation

/// The `event` frame of one subscription, as text.
struct EventText {
    /// The encoding of a raw event's octets.
    enum Encoding: String, Sendable, CaseIterable {
        /// A string in the JSON text.
        case base64
        /// Octets after the JSON text and a line feed, in a binary WebSocket message.
        case binary
    }

    let event: ObservedEvent
    let cursor: FeedCursor?
    var change: ObjectChange.Kind?
    var fields: FieldTree?
    var encoding = Encoding.base64

    /// The octets to send after the JSON text; nil unless the event is raw and the encoding is `binary`.
    var octets: [UInt8]? {
        guard encoding == .binary, case .octets(let octets) = event.data else { return nil }
        return octets
    }

    /// Returns the frame as JSON text, without ``octets``.
    ///
    /// - Parameter id: the client's id of the subscription; nil to omit it.
    func json(id: String?) -> [UInt8] {
        let length = event.head.count + event.data.length * (isBase64 ? 2 : 1)
        var text = ServerFrame.beginning(.event, id: id, reserving: length)
        text.append(UInt8(ascii: ","))
        text += event.head
        if let change { text += #","change":"\#(change.rawValue)""#.utf8 }
        if let cursor { text += #","cursor":"\#(cursor)""#.utf8 }
        text += #","data":"#.utf8
        appendData(to: &text)
        text.append(UInt8(ascii: "}"))
        return text
    }

    private var isBase64: Bool {
        guard encoding == .base64, case .octets = event.data else { return false }
        return true
    }

    private func appendData(to text: inout [UInt8]) {
        switch event.data {
        case .octets(let octets):
            text += #"{"encoding":"\#(encoding.rawValue)""#.utf8
            if encoding == .base64 {
                text += #","value":""#.utf8
                text += Data(octets).base64EncodedData()
                text.append(UInt8(ascii: "\""))
            }
            text.append(UInt8(ascii: "}"))
        case .json(let payload):
            guard let fields else {
                text += payload.bytes
                return
            }
            switch event.subject {
            case .objects:
                if let object = payload.object {
                    text += #"{"object":"#.utf8
                    fields.append(object, to: &text)
                } else {
                    text += #"{"objects":"#.utf8
                    JSONText.appendArray(event.subjects, to: &text) { fields.append($0, to: &$1) }
                }
                text.append(UInt8(ascii: "}"))
            case .data, .none: fields.append(payload.json, to: &text)
            }
        }
    }
}
