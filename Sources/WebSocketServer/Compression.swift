import CWebSockets

/// permessage-deflate (RFC 7692), in both directions without context takeover: a frame is compressed only once for all
/// its connections, and a connection has no state between messages.
///
/// The implementation in libwebsockets 4.1.6 terminates the process if the inflated output exactly fills its buffer.
/// Therefore libwebsockets gets an extension that only accepts the bit RSV1.
enum Compression {
    static let name = "permessage-deflate"

    /// The parameters of an agreement (RFC 7692, 7.1.1): a server may require both, whatever the client offers.
    static let agreedParameters = "; server_no_context_takeover; client_no_context_takeover"

    /// The reserved bit in a frame's first byte that marks a compressed message.
    static let mark: UInt8 = 0x40

    /// The lengths of frames that are compressed. Compressing shorter frames gains little; longer frames would delay
    /// other connections.
    static let frameLengths = 128...64 * 1024

    /// The end of a compressed message, which is not sent (RFC 7692, 7.2.1).
    static let tail: [UInt8] = [0x00, 0x00, 0xff, 0xff]

    /// Returns the number of offers for compression in a value of Sec-WebSocket-Extensions, and the answer to the last
    /// offer; nil if it can't be accepted. A smaller window than the usual one is not supported for the messages that
    /// the server sends.
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
                // Required in the answer if it is in the offer (RFC 7692, 7.1.2.1).
                answer += "; server_max_window_bits=15"
            default: return nil
            }
        }
        return answer
    }

    /// Parses a token or a quoted token (RFC 6455, 9.1): 8 to 15 without leading zeros (RFC 7692, 7.1.2).
    private static func windowBits(_ value: Substring) -> Int? {
        let isQuoted = value.count > 1 && value.first == "\"" && value.last == "\""
        let digits = isQuoted ? value.dropFirst().dropLast() : value
        return (8...15).first { String($0) == digits }
    }
}

/// Compresses one frame after another.
final class Deflater {
    private let stream: UnsafeMutablePointer<z_stream>

    /// Returns nil if memory runs out.
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

    /// Returns the compressed payload; nil if it does not become shorter.
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
        // The output is complete if there is space left after it.
        guard deflate(stream, Z_SYNC_FLUSH) == Z_OK, stream.pointee.avail_out > 0 else { return nil }
        return Array(output[..<(output.count - Int(stream.pointee.avail_out) - Compression.tail.count)])
    }
}

/// Inflates one message after another.
final class Inflater {
    enum Failure: Error {
        case tooLong
        case malformed
    }

    /// Maximum ratio of the inflated to the received length, if the message becomes longer than `freeBytes`. DEFLATE
    /// allows a ratio of a thousand, at almost no cost for the sender. Therefore a read of 4 KiB can end one long
    /// message, including earlier parts, and contain some 160 messages of `freeBytes`.
    private static let maximumRatio = 100
    private static let freeBytes = 8 * 1024

    private static let pieceBytes = 16 * 1024

    private let stream: UnsafeMutablePointer<z_stream>
    private let piece = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: pieceBytes)

    /// Returns nil if memory runs out.
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

    /// Returns the inflated message, which must not exceed `limit` bytes.
    func inflated(_ message: [UInt8], limit: Int) throws(Failure) -> [UInt8] {
        let limit = min(limit, max(Self.freeBytes, Self.maximumRatio * message.count))
        var input = message + Compression.tail
        guard let inputCount = UInt32(exactly: input.count) else { throw .tooLong }
        var output: [UInt8] = []
        let isWellFormed = input.withUnsafeMutableBufferPointer { input in
            inflateReset(stream)
            stream.pointee.next_in = input.baseAddress
            stream.pointee.avail_in = inputCount
            // Every iteration consumes input or fills the piece, and the end of a stream takes more than a byte.
            while output.count <= limit {
                stream.pointee.next_out = piece.baseAddress
                stream.pointee.avail_out = UInt32(piece.count)
                let result = inflate(stream, Z_SYNC_FLUSH)
                output += piece[..<(piece.count - Int(stream.pointee.avail_out))]
                switch result {
                case Z_OK where stream.pointee.avail_out == 0: break
                // All input was consumed.
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
