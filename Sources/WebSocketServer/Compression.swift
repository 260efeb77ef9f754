import CWebSockets

/// permessage-deflate (RFC 7692), both directions without context takeover: a frame is then compressed once for all its
/// connections, and a connection holds no state between messages.
///
/// The implementation in libwebsockets 4.1.6 ends the process where inflated output just fills its buffer. So here
/// libwebsockets has an extension that does no more than let the bit RSV1 pass.
enum Compression {
    static let name = "permessage-deflate"

    /// What an agreement adds to the name (RFC 7692, 7.1.1): a server may ask for both whatever the client offers.
    static let agreedParameters = "; server_no_context_takeover; client_no_context_takeover"

    /// The reserved bit in a frame's first byte that marks a compressed message.
    static let mark: UInt8 = 0x40

    /// Lengths of the frames that are compressed. Shorter ones hardly gain; longer ones would hold up other connections.
    static let frameLengths = 128...64 * 1024

    /// What ends a compressed message and is not sent (RFC 7692, 7.2.1).
    static let tail: [UInt8] = [0x00, 0x00, 0xff, 0xff]

    /// How often the value of Sec-WebSocket-Extensions offers compression, and the answer to the last offer; nil where it
    /// cannot be agreed to. A window that is smaller than the usual one cannot be, for what the server sends.
    static func offers(in value: String) -> (count: Int, answerToLast: String?) {
        let offers = value.split(separator: ",").map { offer in
            offer.split(separator: ";", omittingEmptySubsequences: false).map(HandshakeCheck.trimmed)
        }.filter { $0.first == name[...] }
        return (offers.count, offers.last.flatMap { answer(to: $0.dropFirst()) })
    }

    private static func answer(to parameters: ArraySlice<Substring>) -> String? {
        var answer = agreedParameters
        var seen: Set<Substring> = []
        for parameter in parameters {
            let parts = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                .map(HandshakeCheck.trimmed)
            guard seen.insert(parts[0]).inserted else { return nil }
            let bits = parts.count > 1 ? windowBits(parts[1]) : nil
            switch parts[0] {
            case "server_no_context_takeover", "client_no_context_takeover":
                guard parts.count == 1 else { return nil }
            case "client_max_window_bits":
                guard parts.count == 1 || bits != nil else { return nil }
            case "server_max_window_bits":
                guard bits == 15 else { return nil }
                // Must be there where it is agreed to (RFC 7692, 7.1.2.1).
                answer += "; server_max_window_bits=15"
            default: return nil
            }
        }
        return answer
    }

    /// Of a token or a quoted one (RFC 6455, 9.1): 8 to 15 without leading zeros (RFC 7692, 7.1.2).
    private static func windowBits(_ value: Substring) -> Int? {
        let isQuoted = value.count > 1 && value.first == "\"" && value.last == "\""
        let digits = isQuoted ? value.dropFirst().dropLast() : value
        return (8...15).first { String($0) == digits }
    }
}

/// Compresses frames, one after the other.
final class Deflater {
    private let stream: UnsafeMutablePointer<z_stream>

    /// Nil when there is no memory.
    init?() {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        guard cws_deflate_begin(stream) == Z_OK else {
            stream.deallocate()
            return nil
        }
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    /// The payload, compressed; nil when it does not become shorter.
    func deflated(_ payload: UnsafeRawBufferPointer) -> [UInt8]? {
        let output = UnsafeMutableRawBufferPointer.allocate(
            byteCount: payload.count + Compression.tail.count,
            alignment: 8
        )
        defer { output.deallocate() }
        deflateReset(stream)
        stream.pointee.next_in = UnsafeMutablePointer(
            mutating: payload.baseAddress?.assumingMemoryBound(to: UInt8.self)
        )
        stream.pointee.avail_in = UInt32(payload.count)
        stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(output.count)
        // All of the output is there where it leaves room behind it.
        guard deflate(stream, Z_SYNC_FLUSH) == Z_OK, stream.pointee.avail_out > 0 else { return nil }
        return Array(output[..<(output.count - Int(stream.pointee.avail_out) - Compression.tail.count)])
    }
}

/// Inflates messages, one after the other.
final class Inflater {
    enum Failure: Error {
        case tooLong
        case malformed
    }

    /// How many times as long as it came a message may become, where it is longer than `freeBytes`. DEFLATE can make it
    /// a thousand times as long, which costs its sender next to nothing. So a read of 4 KiB can end one
    /// long message, of what came before too, and bring some 160 of `freeBytes`.
    private static let maximumRatio = 100
    private static let freeBytes = 8 * 1024

    private static let pieceBytes = 16 * 1024

    private let stream: UnsafeMutablePointer<z_stream>
    private let piece = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: pieceBytes)

    /// Nil when there is no memory.
    init?() {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        guard cws_inflate_begin(stream) == Z_OK else {
            stream.deallocate()
            piece.deallocate()
            return nil
        }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
        piece.deallocate()
    }

    /// A whole message, which must not become longer than `limit` bytes.
    func inflated(_ message: [UInt8], limit: Int) throws(Failure) -> [UInt8] {
        let limit = min(limit, max(Self.freeBytes, Self.maximumRatio * message.count))
        var input = message + Compression.tail
        guard let inputCount = UInt32(exactly: input.count) else { throw .tooLong }
        var output: [UInt8] = []
        let isWellFormed = input.withUnsafeMutableBufferPointer { input in
            inflateReset(stream)
            stream.pointee.next_in = input.baseAddress
            stream.pointee.avail_in = inputCount
            // Every round takes input or fills the piece, and the end of a stream takes more than a byte.
            while output.count <= limit {
                stream.pointee.next_out = piece.baseAddress
                stream.pointee.avail_out = UInt32(piece.count)
                let result = inflate(stream, Z_SYNC_FLUSH)
                output += piece[..<(piece.count - Int(stream.pointee.avail_out))]
                switch result {
                case Z_OK where stream.pointee.avail_out == 0: break
                // All input was taken.
                case Z_OK, Z_BUF_ERROR: return true
                // A sender may end a stream and begin another (RFC 7692, 7.2.3.4).
                case Z_STREAM_END: inflateReset(stream)
                default: return false
                }
            }
            return true
        }
        guard isWellFormed else { throw .malformed }
        guard output.count <= limit else { throw .tooLong }
        return output
    }
}
