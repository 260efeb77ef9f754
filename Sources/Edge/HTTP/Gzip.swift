import CZlib

/// A text that is compressed part by part, in the format gzip (RFC 1952).
///
/// A compressed response shows by its length whether text of an attacker repeats a secret in the same response (BREACH).
/// No response contains a secret: tokens and tickets are never listed.
struct Gzip: ~Copyable {
    /// The logarithm of the size of zlib's window.
    private static let windowBits: Int32 = 14
    private static let memoryLevel: Int32 = 7
    /// The memory of zlib while it compresses, in bytes (zconf.h).
    static let memory = 1 << (windowBits + 2) + 1 << (memoryLevel + 9) + 8 << 10
    private static let pieceSize = 16 << 10

    enum Effort: Int32 {
        /// For a response to one request.
        case fast = 1
        /// For a file that is compressed once.
        case thorough = 9
    }

    /// The compressed bytes so far.
    private(set) var bytes: [UInt8] = []
    /// Allocated, because zlib refers to its address.
    private let stream: UnsafeMutablePointer<z_stream>

    /// - Returns: nil if memory runs out.
    init?(_ effort: Effort) {
        stream = .allocate(capacity: 1)
        guard czlib_begin(stream, effort.rawValue, Self.windowBits, Self.memoryLevel) == Z_OK else {
            stream.deallocate()
            return nil
        }
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    /// Returns a whole text as gzip; nil if memory runs out.
    static func whole(_ text: [UInt8], _ effort: Effort) -> [UInt8]? {
        guard var gzip = Gzip(effort) else { return nil }
        gzip.append(text)
        return gzip.finish()
    }

    /// Adds a part of the text.
    mutating func append(_ part: [UInt8]) { deflate(part, Z_NO_FLUSH) }

    /// Ends the text.
    ///
    /// - Returns: all compressed bytes.
    mutating func finish() -> [UInt8] {
        deflate([], Z_FINISH)
        return bytes
    }

    private mutating func deflate(_ part: [UInt8], _ flush: Int32) {
        part.withUnsafeBufferPointer { input in
            // zlib does not change its input.
            stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
            stream.pointee.avail_in = UInt32(input.count)
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.pieceSize) { output in
                repeat {
                    stream.pointee.next_out = output.baseAddress
                    stream.pointee.avail_out = UInt32(output.count)
                    CZlib.deflate(stream, flush)
                    bytes.append(contentsOf: output[..<(output.count - Int(stream.pointee.avail_out))])
                } while stream.pointee.avail_out == 0
            }
        }
    }
}
