import Base
import Coaty
import Foundation
import Network
import Synchronization
import WebSocketServer

/// The text of an event from `"event":` on, which is built once for all clients that receive the same text.
package struct EventText {
    /// The encoding of a raw event's octets.
    package enum Encoding: String, Sendable, CaseIterable {
        /// A string in the JSON text.
        case base64
        /// Octets after the JSON text and a line feed, in a binary WebSocket message.
        case binary
    }

    let event: ObservedEvent
    var fields: FieldTree?
    var encoding = Encoding.base64

    private static let end = Array("}".utf8)

    /// Builds the text. Data that is sent unchanged is not copied.
    func body() -> EventBody {
        var text: [UInt8] = []
        switch event.data {
        case .octets(let octets):
            text += #"{"encoding":"\#(encoding.rawValue)""#.utf8
            guard encoding == .base64 else {
                text += "}}\n".utf8
                return EventBody([event.head, text, octets], isBinary: true, event.shared)
            }
            text += #","value":""#.utf8
            text += Data(octets).base64EncodedData()
            text += "\"}}".utf8
        case .json(let payload):
            guard let fields else {
                return EventBody([event.head, payload.bytes, Self.end], isBinary: false, event.shared)
            }
            append(payload, fields, to: &text)
            text.append(UInt8(ascii: "}"))
        }
        return EventBody([event.head, text], isBinary: false, SharedBytes(capacity: event.head.count + text.capacity))
    }

    private func append(_ payload: Payload, _ fields: FieldTree, to text: inout [UInt8]) {
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

/// The part of an event's frame that is the same for its receivers.
final class EventBody: Sendable {
    /// The text of the frame after the part that differs between clients: JSON members, the closing brace, and octets
    /// if the frame is binary. The parts are sent one after the other.
    let parts: [[UInt8]]
    /// The parts without line breaks. The same arrays if there are none, or if they are not all JSON.
    let lines: [[UInt8]]
    let isBinary: Bool
    /// Length of all parts, in bytes.
    let count: Int
    /// Counts the parts for the clients for which the event is queued.
    let shared: SharedBytes
    private let webSocketFrame = FirstFrame<WebSocketFrame>()
    /// As parts.
    private let eventStreamFrame = FirstFrame<[[UInt8]]>()

    /// The values on which the beginning of a frame depends. Comparing them is cheaper than building the beginning for
    /// each receiver, in which the cursor is enciphered.
    struct Receiver: Equatable {
        let id: String?
        let cursor: FeedCursor?
        let change: ObjectChange.Kind?
        let isLatest: Bool
    }

    /// - Parameter shared: counts the parts.
    init(_ parts: [[UInt8]], isBinary: Bool, _ shared: SharedBytes) {
        self.parts = parts
        self.isBinary = isBinary
        count = parts.reduce(0) { $0 + $1.count }
        let isLine = isBinary || parts.allSatisfy(JSONText.isLine)
        lines = isLine ? parts : parts.map(JSONText.line)
        self.shared = isLine ? shared : SharedBytes(capacity: shared.capacity + count)
    }

    /// Returns the frame for a receiver. Clients with the same ids share one, so that it is built and compressed once.
    ///
    /// - Parameter prefix: returns the beginning of the frame.
    func webSocketFrame(for receiver: Receiver, _ prefix: () -> [UInt8]) -> WebSocketFrame {
        webSocketFrame.frame(for: receiver) {
            let all = [prefix()] + parts
            return isBinary ? WebSocketFrame(binaryParts: all) : WebSocketFrame(utf8Parts: all)
        }
    }

    /// Returns the frame for a receiver of Server-Sent Events, in parts. Clients with the same ids share it.
    ///
    /// - Parameter build: returns the frame.
    func eventStreamFrame(for receiver: Receiver, _ build: () -> [[UInt8]]) -> [[UInt8]] {
        eventStreamFrame.frame(for: receiver, build)
    }
}

/// The frame of the first receiver of an event, for other receivers with the same values.
private struct FirstFrame<Frame: Sendable>: ~Copyable, Sendable {
    private let known = Mutex<(receiver: EventBody.Receiver, frame: Frame)?>(nil)

    func frame(for receiver: EventBody.Receiver, _ build: () -> Frame) -> Frame {
        if let known = known.withLock(\.self), known.receiver == receiver { return known.frame }
        let built = build()
        known.withLock { $0 = $0 ?? (receiver, built) }
        return built
    }
}
