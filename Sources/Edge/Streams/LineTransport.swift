import Feeds
import HTTPServer

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
