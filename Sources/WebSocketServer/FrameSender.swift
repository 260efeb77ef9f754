import CWebSockets

/// Writes frames to sockets, long ones in fragments (RFC 6455, 5.4). Service thread only.
///
/// libwebsockets copies and keeps the part of a write that a socket does not accept. Therefore no write is longer than
/// a fragment; the rest of the frame is stored as a reference to it and an offset.
final class FrameSender {
    /// Maximum length of a fragment, in bytes. A frame that is no longer is sent unfragmented.
    static let fragmentBytes = 64 * 1024

    /// A frame whose sending has begun.
    struct Progress {
        /// The frame, with the object to release when it is sent.
        let queued: QueuedFrame
        fileprivate let content: WebSocketFrame.Content
        /// Payload bytes that were sent.
        fileprivate var offset = 0
    }

    enum Outcome {
        /// Number of payload bytes, and whether they were the frame's last.
        case sent(Int, isWhole: Bool)
        /// The connection is lost.
        case lost
    }

    /// A copy of a fragment: its header must precede the payload in memory, but the payload is shared.
    private let scratch = UnsafeMutableRawBufferPointer.allocate(
        byteCount: cws_headroom() + fragmentBytes,
        alignment: 8
    )

    /// Nil if no connection uses compression, or memory has run out.
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

    /// Begins a frame. Returns the number of compressed bytes; each frame is compressed at most once.
    func begin(_ queued: QueuedFrame, of session: Session) -> Int {
        var compressedBytes = 0
        if session.compresses, let deflater { compressedBytes = queued.frame.compress(by: deflater, in: payload) }
        session.outbound = Progress(
            queued: queued,
            content: queued.frame.content(isCompressed: session.compresses)
        )
        return compressedBytes
    }

    /// Returns the number of payload bytes that ``writeNext(of:to:)`` would send.
    func nextLength(of session: Session) -> Int {
        session.outbound.map { min($0.content.count - $0.offset, Self.fragmentBytes) } ?? 0
    }

    /// Sends the next fragment of `session.outbound`, or the whole frame if it is short enough.
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
