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
        /// The frame, and what is released when it is sent.
        let queued: QueuedFrame
        fileprivate let content: WebSocketFrame.Content
        /// Payload bytes that were sent.
        fileprivate var offset = 0
    }

    enum Outcome {
        /// Payload bytes, and whether they were the frame's last.
        case sent(Int, isWhole: Bool)
        /// The connection is lost.
        case lost
    }

    /// A fragment, copied: its header goes before it, and the payload is shared.
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

    private var payload: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: scratch[cws_headroom()...])
    }

    /// How many bytes were compressed for that, at most once for each frame.
    func begin(_ queued: QueuedFrame, of session: Session) -> Int {
        var compressedBytes = 0
        if session.compresses, let deflater { compressedBytes = queued.frame.compress(by: deflater, in: payload) }
        session.outbound = Progress(
            queued: queued,
            content: queued.frame.content(isCompressed: session.compresses)
        )
        return compressedBytes
    }

    /// The payload bytes that ``writeNext(of:to:)`` would send.
    func nextLength(of session: Session) -> Int {
        session.outbound.map { min($0.content.count - $0.offset, Self.fragmentBytes) } ?? 0
    }

    /// Sends the next fragment of `session.outbound`, or the whole of a frame that is short enough.
    func writeNext(of session: Session, to wsi: OpaquePointer) -> Outcome {
        guard var progress = session.outbound else { return .sent(0, isWhole: false) }
        let isFirst = progress.offset == 0
        let length = progress.content.copy(from: progress.offset, to: payload)
        progress.offset += length
        let isLast = progress.offset == progress.content.count
        session.outbound = isLast ? nil : progress
        session.marksFrame = progress.content.isCompressed && isFirst
        var kind = LWS_WRITE_CONTINUATION.rawValue
        if isFirst {
            kind = (progress.queued.frame.isText ? LWS_WRITE_TEXT : LWS_WRITE_BINARY).rawValue
        }
        if !isLast {
            kind |= LWS_WRITE_NO_FIN.rawValue
        }
        let start = payload.baseAddress?.assumingMemoryBound(to: UInt8.self)
        guard lws_write(wsi, start, length, lws_write_protocol(kind)) >= 0 else { return .lost }
        if isLast { session.sentBytes += progress.queued.frame.count }
        return .sent(length, isWhole: isLast)
    }

    /// Sends a close frame, without the closing handshake of libwebsockets.
    func write(_ close: WebSocketConnection.Close, to wsi: OpaquePointer) {
        let content = [UInt8(close.code >> 8), UInt8(truncatingIfNeeded: close.code)] + close.reason.utf8
        let frame = [0x88, UInt8(content.count)] + content
        payload.copyBytes(from: frame)
        let start = payload.baseAddress?.assumingMemoryBound(to: UInt8.self)
        lws_write(wsi, start, frame.count, LWS_WRITE_HTTP)
    }
}
