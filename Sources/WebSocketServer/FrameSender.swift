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
        let content: WebSocketFrame.Content
        /// Payload bytes that were sent.
        fileprivate var offset = 0

        fileprivate func advanced(by count: Int) -> Progress {
            Progress(frame: frame, content: content, offset: offset + count)
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

    /// Nil where no connection has compression, or there is no memory for it.
    private let deflater: Deflater?

    init(compresses: Bool) {
        deflater = compresses ? Deflater() : nil
    }

    deinit {
        scratch.deallocate()
    }

    /// How many bytes were compressed for that, at most once for each frame.
    func begin(_ frame: WebSocketFrame, of session: Session) -> Int {
        let compressedBytes = session.compresses ? deflater.map(frame.compress) ?? 0 : 0
        session.outbound = Progress(frame: frame, content: frame.content(isCompressed: session.compresses))
        return compressedBytes
    }

    /// Sends the next fragment of `session.outbound`, or the whole of a frame that is short enough.
    func writeNext(of session: Session, to wsi: OpaquePointer) -> Outcome {
        guard let progress = session.outbound else { return .sent(0, isWhole: false) }
        let payload = progress.content.payload
        let rest = payload[progress.offset...]
        let piece = rest.prefix(Self.fragmentBytes)
        let isLast = piece.count == rest.count
        session.outbound = isLast ? nil : progress.advanced(by: piece.count)
        session.marksFrame = progress.content.isCompressed && progress.offset == 0
        var kind = LWS_WRITE_CONTINUATION.rawValue
        if progress.offset == 0 {
            kind = (progress.frame.isText ? LWS_WRITE_TEXT : LWS_WRITE_BINARY).rawValue
        }
        if !isLast {
            kind |= LWS_WRITE_NO_FIN.rawValue
        }
        // The payload lives as long as the frame.
        let written = withExtendedLifetime(progress.frame) {
            let start =
                piece.count == payload.count ? payload.baseAddress : copy(UnsafeRawBufferPointer(rebasing: piece))
            return lws_write(wsi, start?.assumingMemoryBound(to: UInt8.self), piece.count, lws_write_protocol(kind))
        }
        return written >= 0 ? .sent(piece.count, isWhole: isLast) : .lost
    }

    private func copy(_ piece: UnsafeRawBufferPointer) -> UnsafeMutableRawPointer? {
        UnsafeMutableRawBufferPointer(rebasing: scratch[cws_headroom()...]).copyMemory(from: piece)
        return scratch.baseAddress?.advanced(by: cws_headroom())
    }
}
