import Feeds
import WebSocketServer

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

extension FrameOffer {
    fileprivate init(_ offer: WebSocketConnection.Offer) {
        switch offer {
        case .queued: self = .queued
        case .full: self = .full
        case .closed: self = .closed
        }
    }
}
