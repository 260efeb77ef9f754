import CWebSockets

/// Gives frames to sockets, a long one in fragments (RFC 6455, 5.4). Service thread only.
///
/// What a socket does not take of a write, libwebsockets copies and keeps. So no write is longer than a fragment; what
/// remains of the frame is a reference to it and an offset.
final class FrameSender {
    /// Longest fragment. A frame that is no longer is sent as it is.
    static let fragmentBytes = 64 * 1024

    /// A frame whose sending has begun.
    struct Progress {
        let frame: WebSocketFrame
        /// Payload bytes that were sent.
        fileprivate(set) var offset = 0

        init(_ frame: WebSocketFrame) {
            self.frame = frame
        }
    }

    enum Outcome {
        /// Payload bytes, and whether they were the frame's last.
        case sent(Int, isWhole: Bool)
        /// The connection is lost.
        case lost
    }

    /// A fragment, copied: its header goes before it, where the frame has payload that other connections still need.
    private let scratch = UnsafeMutableRawBufferPointer.allocate(
        byteCount: cws_headroom() + fragmentBytes,
        alignment: 8
    )

    deinit {
        scratch.deallocate()
    }

    /// Sends the next fragment of `session.outbound`, or the whole of a frame that is short enough.
    func writeNext(of session: Session, to wsi: OpaquePointer) -> Outcome {
        guard let progress = session.outbound else { return .sent(0, isWhole: false) }
        let frame = progress.frame
        guard frame.count > Self.fragmentBytes else {
            session.outbound = nil
            return frame.write(to: wsi) ? .sent(frame.count, isWhole: true) : .lost
        }
        let rest = frame.payload.dropFirst(progress.offset)
        let piece = rest.prefix(Self.fragmentBytes)
        let isLast = piece.count == rest.count
        session.outbound?.offset += piece.count
        if isLast {
            session.outbound = nil
        }
        let kind = progress.offset > 0 ? LWS_WRITE_CONTINUATION : frame.isText ? LWS_WRITE_TEXT : LWS_WRITE_BINARY
        return write(piece, to: wsi, as: isLast ? kind : lws_write_protocol(kind.rawValue | LWS_WRITE_NO_FIN.rawValue))
            ? .sent(piece.count, isWhole: isLast) : .lost
    }

    private func write(
        _ piece: Slice<UnsafeRawBufferPointer>,
        to wsi: OpaquePointer,
        as kind: lws_write_protocol
    ) -> Bool {
        guard let start = scratch.baseAddress?.advanced(by: cws_headroom()) else { return false }
        UnsafeMutableRawBufferPointer(start: start, count: piece.count)
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: piece))
        return lws_write(wsi, start.assumingMemoryBound(to: UInt8.self), piece.count, kind) >= 0
    }
}
