import Feeds
import HTTPServer

/// A stream of Server-Sent Events (HTML Living Standard, 9.2). The frame's op is the event's name, and its cursor is
/// the id.
struct EventStreamTransport: FrameTransport {
    let stream: HTTPStream

    /// A comment without text, which clients ignore.
    static let heartbeat = Array(":\n\n".utf8)

    func offer(_ frame: OutboundFrame) -> FrameOffer {
        FrameOffer(stream.write(frame.eventStreamFrame, holding: frame.charge))
    }

    func offer(_ batch: ObjectBatch) -> (number: Int, FrameOffer) {
        let last = batch.cursor.map { OutboundFrame.eventStreamBeginning(.event, $0) }
        return stream.offer(
            batch,
            beginning: OutboundFrame.eventStreamBeginning(.event, nil),
            last: last,
            end: OutboundFrame.eventStreamEnd
        )
    }

    func finish(_ end: ConnectionEnd) { stream.finish() }

    func abort() { stream.finish() }
}
