// Its shim contains MSG_NOSIGNAL, which Glibc does not export to Swift.
import CMicroHTTPD
import Glibc

/// The unsent bytes of a stream, and their framing on the connection.
///
/// Bytes are framed when they are sent, not when they are queued: however small the writes are, a queue needs no memory
/// for framing, and what has accumulated is sent in large frames.
struct StreamQueue {
    /// The result of sending a frame.
    enum SendResult {
        /// The whole frame is sent.
        case sent
        /// The socket has no space for the rest of the frame.
        case full
        /// The connection has failed.
        case failed
    }

    /// Objects that must be released outside the lock of the stream.
    struct Released {
        private var first: (any Sendable & AnyObject)?
        private var others: [any Sendable & AnyObject] = []

        /// Most writes release one object, which needs no array.
        fileprivate mutating func append(_ object: any Sendable & AnyObject) {
            if first == nil { first = object } else { others.append(object) }
        }
    }

    private struct Part {
        let bytes: [UInt8]
        /// Released when the part is sent; set only for the last part of a write.
        let holder: (any Sendable & AnyObject)?
    }

    /// A frame that is being sent: one chunk of RFC 9112, section 7.1, or bytes without framing.
    private struct Frame {
        /// Number of body bytes.
        let bodySize: Int
        /// Number of bytes before the body.
        let headSize: Int
        /// Number of bytes after the body.
        let tailSize: Int
        /// Number of sent bytes of head, body and tail.
        var sent = 0

        init(bodySize: Int, isChunked: Bool) {
            self.bodySize = bodySize
            let digits = (Int.bitWidth - bodySize.leadingZeroBitCount + 3) / 4
            (headSize, tailSize) = isChunked ? (digits + 2, 2) : (0, 0)
        }

        var size: Int { headSize + bodySize + tailSize }

        /// Number of sent bytes of the body.
        var sentBody: Int { min(max(sent - headSize, 0), bodySize) }

        /// The byte at `index` of the head: the size of the body in hexadecimal digits, CR, LF.
        func headByte(at index: Int) -> UInt8 {
            switch headSize - index {
            case 2: return UInt8(ascii: "\r")
            case 1: return UInt8(ascii: "\n")
            case let left:
                let digit = UInt8(truncatingIfNeeded: bodySize >> (4 * (left - 3))) & 0xf
                return digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") - 10 + digit
            }
        }
    }

    /// Maximum number of body bytes in a frame.
    private static let maximumFrame = 16 * 1024
    /// Maximum number of parts whose space is kept when everything is sent.
    private static let keptCapacity = 64

    /// Number of queued bytes of the body.
    private(set) var bytes = 0
    /// Number of sent bytes of the body.
    private(set) var sentBytes = 0
    private let isChunked: Bool
    private var parts: [Part] = []
    /// The index of the first part that is not sent entirely, and the number of its sent bytes.
    private var first = 0
    private var offset = 0
    private var frame: Frame?

    /// - Parameter isChunked: whether the body has chunks; if not, it ends with the connection.
    init(isChunked: Bool) {
        self.isChunked = isChunked
    }

    /// Whether everything is sent, including framing.
    var isEmpty: Bool { bytes == 0 && frame == nil }

    /// Adds parts of which at least one is not empty.
    ///
    /// - Parameter holder: released when all of them are sent.
    mutating func append(_ added: [[UInt8]], holding holder: (any Sendable & AnyObject)? = nil) {
        let last = added.lastIndex { !$0.isEmpty }
        for (index, part) in added.enumerated() where !part.isEmpty {
            parts.append(Part(bytes: part, holder: index == last ? holder : nil))
            bytes += part.count
        }
    }

    /// Removes everything.
    mutating func removeAll() -> Released {
        var released = Released()
        for case let holder? in parts.lazy.map(\.holder) { released.append(holder) }
        parts = []
        (first, offset, bytes, frame) = (0, 0, 0, nil)
        return released
    }

    /// Sends the next frame, or the rest of it, without blocking. The queue must not be empty.
    mutating func sendFrame(to descriptor: Int32, _ released: inout Released) -> SendResult {
        var frame = self.frame ?? Frame(bodySize: min(bytes, Self.maximumFrame), isChunked: isChunked)
        let count = withUnsafeTemporaryAllocation(byteCount: frame.size - frame.sent, alignment: 1) { buffer in
            fill(buffer, from: frame)
            return send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        }
        guard count >= 0 else {
            self.frame = frame
            return errno == EAGAIN || errno == EINTR ? .full : .failed
        }
        let sentBody = frame.sentBody
        frame.sent += count
        advance(frame.sentBody - sentBody, &released)
        let isSent = frame.sent == frame.size
        self.frame = isSent ? nil : frame
        return isSent ? .sent : .full
    }

    /// Copies the unsent bytes of a frame to a buffer of their size.
    private func fill(_ buffer: UnsafeMutableRawBufferPointer, from frame: Frame) {
        var filled = 0
        for index in min(frame.sent, frame.headSize)..<frame.headSize {
            buffer[filled] = frame.headByte(at: index)
            filled += 1
        }
        let bodyEnd = filled + frame.bodySize - frame.sentBody
        var (part, offset) = (first, offset)
        while filled < bodyEnd {
            let bytes = parts[part].bytes
            let count = min(bodyEnd - filled, bytes.count - offset)
            bytes.withUnsafeBytes { bytes in
                let source = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
                UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]).copyMemory(from: source)
            }
            filled += count
            (part, offset) = (part + 1, 0)
        }
        // The tail of a chunk is CR, LF, of which CR may be sent.
        if filled + 2 <= buffer.count { buffer[filled] = UInt8(ascii: "\r") }
        if filled < buffer.count { buffer[buffer.count - 1] = UInt8(ascii: "\n") }
    }

    /// Removes sent bytes of the body.
    private mutating func advance(_ count: Int, _ released: inout Released) {
        bytes -= count
        sentBytes += count
        var left = count
        while left > 0 {
            let part = parts[first]
            let step = min(left, part.bytes.count - offset)
            left -= step
            offset += step
            guard offset == part.bytes.count else { break }
            if let holder = part.holder { released.append(holder) }
            parts[first] = Part(bytes: [], holder: nil)
            first += 1
            offset = 0
        }
        if first == parts.count {
            parts.removeAll(keepingCapacity: parts.capacity <= Self.keptCapacity)
            first = 0
        } else if first * 2 >= parts.count {
            parts.removeFirst(first)
            first = 0
        }
    }
}
