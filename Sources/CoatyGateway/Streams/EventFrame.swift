import Coaty
import Foundation
import WebSocketServer

/// What a stream client gets of an event: `{"op":"event","event":…,"data":…}` and who sent it, with the payload as it came.
enum EventFrame {
    static func text<Event: CommunicationEvent>(_ name: String, _ event: Event) -> WebSocketFrame {
        let payload = event.payload.bytes
        var text: [UInt8] = []
        text.reserveCapacity(payload.count + 128)
        text += #"{"op":"event","event":"\#(name)","sourceId":"#.utf8
        JSONText.append(event.sourceId?.string ?? "", to: &text)
        text += #","data":"#.utf8
        text += payload
        text.append(UInt8(ascii: "}"))
        return WebSocketFrame(utf8: text)
    }

    /// A value that came for an IO actor: as it is, or in base64 where it is raw.
    static func text(_ event: IoValueEvent, actor: CoatyUUID) -> WebSocketFrame {
        var text = Array(#"{"op":"event","event":"iovalue","ioActorId":"\#(actor)""#.utf8)
        text.reserveCapacity(event.bytes.count * 4 / 3 + 256)
        if let source = event.ioSourceId {
            text += #","ioSourceId":"#.utf8
            JSONText.append(source.string, to: &text)
        }
        if event.isRaw {
            text += #","data":{"encoding":"base64","value":""#.utf8
            text += Data(event.bytes).base64EncodedData()
            text += #""}}"#.utf8
        } else {
            text += #","data":{"value":"#.utf8
            text += event.bytes
            text += "}}".utf8
        }
        return WebSocketFrame(utf8: text)
    }

    /// How an IO point is associated.
    static func text(_ event: IoStateEvent, point: CoatyUUID) -> WebSocketFrame {
        let state = IoPointState(event).members
        return WebSocketFrame(text: #"{"op":"event","event":"iostate","ioPointId":"\#(point)","data":{\#(state)}}"#)
    }

    /// How many associations a frame has at most, so that none is too large for a connection's queue.
    private static let associationsPerFrame = 1_000

    /// What has changed in the associations of a context; several frames where it is much.
    static func texts(_ changes: IoAssociationChanges, context: CoatyUUID) -> [WebSocketFrame] {
        let count = max(changes.added.count, changes.removed.count, changes.changed.count, 1)
        return stride(from: 0, to: count, by: associationsPerFrame).map { start in
            func part(_ list: [IoAssociation]) -> [IoAssociation] {
                Array(list.dropFirst(start).prefix(associationsPerFrame))
            }
            var piece = IoAssociationChanges()
            piece.added = part(changes.added)
            piece.removed = part(changes.removed)
            piece.changed = part(changes.changed)
            var text = Array(#"{"op":"event","event":"routing","contextId":"#.utf8)
            JSONText.append(context.string, to: &text)
            // Ids and rates can always be said in JSON.
            text += #","data":{"associations":\#((try? PayloadCoder.encode(piece)) ?? "{}")}}"#.utf8
            return WebSocketFrame(utf8: text)
        }
    }
}
