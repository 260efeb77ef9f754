import CWebSockets

/// An outbound message, framed once for all the connections it goes to: what each of them queues is a reference.
///
/// A frame belongs to the connections of one server.
public final class WebSocketFrame: @unchecked Sendable {
    // @unchecked: `storage` is payload behind the headroom of libwebsockets. The payload is written in init and never
    // again. lws_write() puts the frame header into the headroom on each send; only the one service thread of a server
    // sends, so nobody else touches those bytes.

    private static let headroom = cws_headroom()

    private let storage: UnsafeMutableRawBufferPointer
    let isText: Bool

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
    }

    /// Length of the payload in bytes.
    public var count: Int { storage.count - Self.headroom }

    var payload: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: storage[Self.headroom...]) }

    /// Service thread only. False when the connection is lost; what the socket did not take at once is copied and kept
    /// by libwebsockets.
    func write(to wsi: OpaquePointer) -> Bool {
        guard let start = storage.baseAddress else { return false }
        let payload = start.advanced(by: Self.headroom).assumingMemoryBound(to: UInt8.self)
        return lws_write(wsi, payload, count, isText ? LWS_WRITE_TEXT : LWS_WRITE_BINARY) >= 0
    }
}
