import CWebSockets

/// An outbound message, framed once for all the connections it goes to: what each of them queues is a reference.
///
/// A frame belongs to the connections of one server.
public final class WebSocketFrame: @unchecked Sendable {
    // @unchecked: `storage` is payload behind the headroom of libwebsockets. The payload is written in init and never
    // again. lws_write() puts the frame header into the headroom on each send; only the one service thread of a server
    // sends, so nobody else touches those bytes, nor the compressed form.

    fileprivate static let headroom = cws_headroom()

    private let storage: UnsafeMutableRawBufferPointer
    let isText: Bool
    /// Like `storage`, once a connection with compression was to get it and where it is shorter.
    private var compressed: UnsafeMutableRawBufferPointer?
    private var wasCompressed = false

    /// A text message.
    public convenience init(text: String) {
        self.init(utf8: Array(text.utf8))
    }

    /// A text message of bytes that the caller knows to be UTF-8; they are not checked.
    public convenience init(utf8: some Collection<UInt8>) {
        self.init(payload: utf8, isText: true)
    }

    /// A binary message.
    public convenience init(binary: some Collection<UInt8>) {
        self.init(payload: binary, isText: false)
    }

    private init(payload: some Collection<UInt8>, isText: Bool) {
        storage = .allocate(byteCount: Self.headroom + payload.count, alignment: 8)
        UnsafeMutableRawBufferPointer(rebasing: storage[Self.headroom...]).copyBytes(from: payload)
        self.isText = isText
    }

    deinit {
        storage.deallocate()
        compressed?.deallocate()
    }

    /// Length of the payload in bytes.
    public var count: Int { storage.count - Self.headroom }

    /// Compresses the payload where that was not tried yet; how many bytes that took. Service thread only.
    func compress(by deflater: Deflater) -> Int {
        guard !wasCompressed, Compression.frameLengths.contains(count) else { return 0 }
        wasCompressed = true
        let payload = UnsafeRawBufferPointer(rebasing: storage[Self.headroom...])
        compressed = deflater.deflated(payload, headroom: Self.headroom)
        return count
    }

    /// Payload with headroom before it, for a connection with or without compression. Service thread only.
    func content(isCompressed: Bool) -> Content {
        guard isCompressed, let compressed else { return Content(storage: storage, isCompressed: false) }
        return Content(storage: compressed, isCompressed: true)
    }

    /// Lives as long as its frame. Service thread only.
    struct Content {
        fileprivate let storage: UnsafeMutableRawBufferPointer
        let isCompressed: Bool

        var payload: UnsafeMutableRawBufferPointer {
            UnsafeMutableRawBufferPointer(rebasing: storage[WebSocketFrame.headroom...])
        }
    }
}
