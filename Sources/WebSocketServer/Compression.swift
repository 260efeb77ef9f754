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
    static let frameLengths = 128...1024 * 1024

    /// What ends a compressed message and is not sent (RFC 7692, 7.2.1).
    static let tail: [UInt8] = [0x00, 0x00, 0xff, 0xff]

    /// How often the value of Sec-WebSocket-Extensions offers compression, and whether the last offer can be agreed to. A
    /// window that is smaller than the usual one cannot be, for what the server sends.
    static func offers(in value: String) -> (count: Int, isLastAcceptable: Bool) {
        let offers = value.split(separator: ",").map { offer in
            offer.split(separator: ";", omittingEmptySubsequences: false).map(HandshakeCheck.trimmed)
        }.filter { $0.first == name[...] }
        guard let parameters = offers.last?.dropFirst() else { return (0, false) }
        let names = Set(parameters.map { $0.prefix { $0 != "=" } })
        return (offers.count, names.count == parameters.count && parameters.allSatisfy(isAcceptable))
    }

    private static func isAcceptable(_ parameter: Substring) -> Bool {
        let parts = parameter.split(separator: "=", maxSplits: 1).map(HandshakeCheck.trimmed)
        let bits = parts.count > 1 ? Int(parts[1].filter { $0 != "\"" }) : nil
        return switch parts.first {
        case "server_no_context_takeover", "client_no_context_takeover": parts.count == 1
        case "client_max_window_bits": parts.count == 1 || (8...15).contains(bits ?? 0)
        case "server_max_window_bits": bits == 15
        default: false
        }
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

    /// The payload in `headroom` bytes and more, allocated for the caller; nil when it does not become shorter.
    func deflated(_ payload: UnsafeRawBufferPointer, headroom: Int) -> UnsafeMutableRawBufferPointer? {
        let output = UnsafeMutableRawBufferPointer.allocate(
            byteCount: headroom + payload.count + Compression.tail.count,
            alignment: 8
        )
        deflateReset(stream)
        stream.pointee.next_in = UnsafeMutablePointer(
            mutating: payload.baseAddress?.assumingMemoryBound(to: UInt8.self)
        )
        stream.pointee.avail_in = UInt32(payload.count)
        stream.pointee.next_out = output.baseAddress?.advanced(by: headroom).assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(output.count - headroom)
        // All of the output is there where it leaves room behind it.
        guard deflate(stream, Z_SYNC_FLUSH) == Z_OK, stream.pointee.avail_out > 0 else {
            output.deallocate()
            return nil
        }
        let count = output.count - Int(stream.pointee.avail_out) - Compression.tail.count
        let exact = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 8)
        exact.copyMemory(from: UnsafeRawBufferPointer(rebasing: output[..<count]))
        output.deallocate()
        return exact
    }
}

/// Inflates one message.
final class Inflater {
    enum Failure: Error {
        case tooLong
        case malformed
    }

    private static let pieceBytes = 16 * 1024

    private let stream: UnsafeMutablePointer<z_stream>

    /// Nil when there is no memory.
    init?() {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        guard cws_inflate_begin(stream) == Z_OK else {
            stream.deallocate()
            return nil
        }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// Appends what `input` holds to `message`, which must not become longer than `limit` bytes.
    func inflate(
        _ input: UnsafeRawBufferPointer,
        into message: inout [UInt8],
        limit: Int
    ) throws(Failure) {
        stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
        stream.pointee.avail_in = UInt32(input.count)
        var result = Z_OK
        repeat {
            message += [UInt8](unsafeUninitializedCapacity: Self.pieceBytes) { piece, count in
                stream.pointee.next_out = piece.baseAddress
                stream.pointee.avail_out = UInt32(Self.pieceBytes)
                result = CWebSockets.inflate(stream, Z_SYNC_FLUSH)
                count = Self.pieceBytes - Int(stream.pointee.avail_out)
            }
            guard message.count <= limit else { throw .tooLong }
            switch result {
            case Z_OK: break
            // No more to do with this input.
            case Z_BUF_ERROR: return
            // A sender may end a stream and begin another (RFC 7692, 7.2.3.4).
            case Z_STREAM_END: inflateReset(stream)
            default: throw .malformed
            }
        } while stream.pointee.avail_in > 0 || stream.pointee.avail_out == 0
    }

    /// Appends what is left when all of the message has come.
    func end(_ message: inout [UInt8], limit: Int) throws(Failure) {
        let outcome = Compression.tail.withUnsafeBytes { tail in
            Result { () throws(Failure) in try inflate(tail, into: &message, limit: limit) }
        }
        try outcome.get()
    }
}
