import CWebSockets

/// An outbound message. Its payload is a list of parts, so that frames that differ only at their start share the rest:
/// arrays share their storage, and the parts are joined only piece by piece, when they are sent.
///
/// A frame belongs to the connections of one server.
public final class WebSocketFrame: @unchecked Sendable {
    // @unchecked: only the service thread of the server, the only thread that sends, uses the compressed form.

    /// The length of the payload, in bytes.
    public let count: Int
    let isText: Bool
    private let parts: [[UInt8]]
    /// The compressed payload, if a connection with compression has needed it and it is shorter.
    private var compressed: [UInt8]?
    private var wasCompressed = false

    /// Creates a text message.
    public convenience init(text: String) {
        self.init(utf8: Array(text.utf8))
    }

    /// Creates a text message from bytes that the caller knows to be UTF-8; they are not checked.
    public convenience init(utf8: some Collection<UInt8>) {
        self.init(utf8Parts: [Array(utf8)])
    }

    /// Creates a text message from parts that together are UTF-8, which is not checked. The parts are sent one after
    /// another.
    public convenience init(utf8Parts parts: [[UInt8]]) {
        self.init(parts, isText: true)
    }

    /// Creates a binary message.
    public convenience init(binary: some Collection<UInt8>) {
        self.init(binaryParts: [Array(binary)])
    }

    /// Creates a binary message from parts, which are sent one after another.
    public convenience init(binaryParts parts: [[UInt8]]) {
        self.init(parts, isText: false)
    }

    private init(_ parts: [[UInt8]], isText: Bool) {
        self.parts = parts
        self.isText = isText
        count = parts.reduce(0) { $0 + $1.count }
    }

    // MARK: Service thread

    /// Returns the payload for a connection with or without compression.
    func content(isCompressed: Bool) -> Content {
        guard isCompressed, let compressed else { return Content(parts: parts, count: count, isCompressed: false) }
        return Content(parts: [compressed], count: compressed.count, isCompressed: true)
    }

    /// Compresses the payload unless that was tried before.
    ///
    /// - Parameter scratch: a buffer for the payload; must have space for the longest payload that is compressed.
    /// - Returns: the number of compressed bytes.
    func compress(by deflater: Deflater, in scratch: UnsafeMutableRawBufferPointer) -> Int {
        guard !wasCompressed, Compression.frameLengths.contains(count) else { return 0 }
        wasCompressed = true
        let length = content(isCompressed: false).copy(from: 0, to: scratch)
        compressed = deflater.deflated(UnsafeRawBufferPointer(rebasing: scratch[..<length]))
        return count
    }

    /// The bytes to send.
    struct Content {
        private let parts: [[UInt8]]
        let count: Int
        let isCompressed: Bool

        fileprivate init(parts: [[UInt8]], count: Int, isCompressed: Bool) {
            self.parts = parts
            self.count = count
            self.isCompressed = isCompressed
        }

        /// Copies as many bytes from `offset` on as fit, and returns their number.
        func copy(from offset: Int, to target: UnsafeMutableRawBufferPointer) -> Int {
            var skipped = offset
            var filled = 0
            for part in parts where filled < target.count {
                let start = min(skipped, part.count)
                skipped -= start
                let length = min(part.count - start, target.count - filled)
                part.withUnsafeBytes { bytes in
                    UnsafeMutableRawBufferPointer(rebasing: target[filled..<filled + length])
                        .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[start..<start + length]))
                }
                filled += length
            }
            return filled
        }
    }
}
