import Coaty
import WebSocketServer

/// What a stream client gets of an event: `{"op":"event","event":…,"sourceId":…,"data":…}`, with the payload as it came.
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
}
