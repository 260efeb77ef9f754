import CWebSockets

/// Writes frames to sockets: several short ones together, long ones in fragments (RFC 6455, 5.4). Service thread only.
///
/// libwebsockets copies and keeps the part of a write that a socket does not accept. Therefore no write is longer than
/// a batch or a fragment; the rest of a long frame is stored as a reference to it and an offset.
///
/// The frame headers are written here, and libwebsockets sends the bytes as they are: it would write one header for
/// each call, and its extensions could not mark single frames as compressed.
final class FrameSender {
    /// Maximum length of a fragment, in bytes. A frame that is no longer is sent unfragmented.
    static let fragmentBytes = 64 * 1024
    /// Maximum number of payload bytes that are sent together. A system call costs as much as copying them.
    static let batchBytes = 16 * 1024
    /// Maximum length of a frame header without a mask, in bytes.
    private static let headerBytes = 10

    private static let pingPayload = Array("ping".utf8)

    /// A frame whose sending has begun.
    struct Progress {
        /// The frame, with the object to release when it is sent.
        let queued: QueuedFrame
        fileprivate let content: WebSocketFrame.Content
        /// Payload bytes that were sent.
        fileprivate var offset = 0
    }

    /// Numbers of payload bytes and complete frames that were sent.
    struct Sent {
        var bytes = 0
        var messages = 0
    }

    private enum Opcode: UInt8 {
        case continuation = 0
        case text = 1
        case binary = 2
        case close = 8
        case ping = 9

        init(_ frame: WebSocketFrame) { self = frame.isText ? .text : .binary }
    }

    /// The bytes of one write. They are copied for each connection: to send them again from here to the next connection
    /// that gets the same frames changed nothing that could be measured with frames of 400 bytes.
    private let scratch = UnsafeMutableRawBufferPointer.allocate(
        byteCount: cws_headroom() + headerBytes + fragmentBytes,
        alignment: 8
    )

    /// The part of `scratch` that libwebsockets does not use.
    private var space: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: scratch[cws_headroom()...])
    }

    /// Nil if no connection uses compression, or memory has run out.
    private let deflater: Deflater?

    init(compresses: Bool) {
        deflater = compresses ? Deflater() : nil
    }

    deinit {
        scratch.deallocate()
    }

    // MARK: Short frames

    /// Compresses the frames of a batch for a session with compression. Returns the number of compressed bytes; each
    /// frame is compressed at most once.
    func compress(_ batch: [QueuedFrame], of session: Session) -> Int {
        session.compresses ? batch.reduce(0) { $0 + compress($1.frame) } : 0
    }

    private func compress(_ frame: WebSocketFrame) -> Int {
        deflater.map { frame.compress(by: $0, in: space) } ?? 0
    }

    /// Sends frames with at most ``batchBytes`` together. Returns false if the connection is lost.
    func write(_ batch: [QueuedFrame], of session: Session, to wsi: OpaquePointer, _ sent: inout Sent) -> Bool {
        var end = 0
        for queued in batch {
            let content = queued.frame.content(isCompressed: session.compresses)
            end += putHeader(Opcode(queued.frame), isMarked: content.isCompressed, length: content.count, at: end)
            end += content.copy(from: 0, to: UnsafeMutableRawBufferPointer(rebasing: space[end...]))
            sent.bytes += content.count
        }
        sent.messages += batch.count
        return write(end, of: session, to: wsi)
    }

    // MARK: Long frames

    /// Begins a frame. Returns the number of compressed bytes; each frame is compressed at most once.
    func begin(_ queued: QueuedFrame, of session: Session) -> Int {
        let compressedBytes = session.compresses ? compress(queued.frame) : 0
        session.outbound = Progress(
            queued: queued,
            content: queued.frame.content(isCompressed: session.compresses)
        )
        return compressedBytes
    }

    /// Returns the number of payload bytes that ``writeNext(of:to:_:)`` would send.
    func nextLength(of session: Session) -> Int {
        let limit = session.unsent.isSlow ? UnsentLimit.slowest : Self.fragmentBytes
        return session.outbound.map { min($0.content.count - $0.offset, limit) } ?? 0
    }

    /// Returns the maximum number of payload bytes that are sent together. A ping can't overtake bytes that
    /// libwebsockets keeps, so these are few on a slow link.
    func batchBytes(of session: Session) -> Int {
        session.unsent.isSlow ? UnsentLimit.slowest : Self.batchBytes
    }

    /// Sends the next fragment of `session.outbound`, or the whole frame if it is short enough. Returns false if the
    /// connection is lost.
    func writeNext(of session: Session, to wsi: OpaquePointer, _ sent: inout Sent) -> Bool {
        guard var progress = session.outbound else { return true }
        let (content, isFirst) = (progress.content, progress.offset == 0)
        let length = nextLength(of: session)
        progress.offset += length
        let isLast = progress.offset == content.count
        let header = putHeader(
            isFirst ? Opcode(progress.queued.frame) : .continuation,
            isFinal: isLast,
            isMarked: isFirst && content.isCompressed,
            length: length,
            at: 0
        )
        let target = UnsafeMutableRawBufferPointer(rebasing: space[header..<header + length])
        _ = content.copy(from: progress.offset - length, to: target)
        session.outbound = isLast ? nil : progress
        guard write(header + length, of: session, to: wsi) else { return false }
        sent.bytes += length
        if isLast {
            sent.messages += 1
            session.sentBytes += progress.queued.frame.count
            if lws_partial_buffered(wsi) != 0 { session.kept = [progress.queued] }
        }
        return true
    }

    // MARK: Bytes

    /// Sends a close frame, without the closing handshake of libwebsockets.
    func write(_ close: WebSocketConnection.Close, to wsi: OpaquePointer) {
        let content = [UInt8(close.code >> 8), UInt8(truncatingIfNeeded: close.code)] + close.reason.utf8
        let header = putHeader(.close, length: content.count, at: 0)
        UnsafeMutableRawBufferPointer(rebasing: space[header...]).copyBytes(from: content)
        _ = write(header + content.count, to: wsi)
    }

    /// Sends a ping. It has a payload: libwebsockets does not report an empty pong. Returns false if the connection is
    /// lost.
    func writePing(of session: Session, to wsi: OpaquePointer) -> Bool {
        let header = putHeader(.ping, length: Self.pingPayload.count, at: 0)
        UnsafeMutableRawBufferPointer(rebasing: space[header...]).copyBytes(from: Self.pingPayload)
        return write(header + Self.pingPayload.count, of: session, to: wsi)
    }

    /// Writes the header of a frame (RFC 6455, 5.2) into `space`. Returns its length.
    private func putHeader(
        _ opcode: Opcode,
        isFinal: Bool = true,
        isMarked: Bool = false,
        length: Int,
        at start: Int
    ) -> Int {
        space[start] = opcode.rawValue | (isFinal ? 0x80 : 0) | (isMarked ? Compression.mark : 0)
        guard length > 125 else {
            space[start + 1] = UInt8(length)
            return 2
        }
        let digits = length > 0xffff ? 8 : 2
        space[start + 1] = digits == 8 ? 127 : 126
        for digit in 0..<digits {
            space[start + 2 + digit] = UInt8(truncatingIfNeeded: length >> (8 * (digits - 1 - digit)))
        }
        return 2 + digits
    }

    private func write(_ count: Int, of session: Session, to wsi: OpaquePointer) -> Bool {
        session.passedBytes += count
        return write(count, to: wsi)
    }

    /// Sends the first bytes of `space` as they are.
    private func write(_ count: Int, to wsi: OpaquePointer) -> Bool {
        let start = space.baseAddress?.assumingMemoryBound(to: UInt8.self)
        return lws_write(wsi, start, count, LWS_WRITE_HTTP) >= 0
    }
}
