import CWebSockets

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The tables of subprotocols and extensions in the form that libwebsockets requires. It keeps pointers to them as long
/// as the context exists.
final class Protocols {
    /// Must not be a name that a client may offer.
    private static let nameOfNone = "(none)"

    /// Also limits the bytes of one read from a socket, and is allocated for each connection.
    private static let receiveBufferBytes = 4096

    /// Maximum number of bytes that are passed to a socket in one call, without the frame header: the rest of a longer
    /// write is sent later.
    private static let sendPieceBytes = FrameSender.fragmentBytes

    let table: UnsafeMutablePointer<lws_protocols>
    /// Nil if compression is not allowed.
    let extensions: UnsafeMutablePointer<lws_extension>?
    let retry: UnsafeMutablePointer<lws_retry_bo_t>
    private let names: [UnsafeMutablePointer<CChar>?]

    init(configuration: WebSocketServer.Configuration, callback: @escaping LibraryCallback) {
        names = ([Self.nameOfNone] + configuration.subprotocols).map { strdup($0) }
        table = .allocate(capacity: names.count + 1)
        table.initialize(repeating: lws_protocols(), count: names.count + 1)
        for (index, name) in names.enumerated() {
            table[index].name = UnsafePointer(name)
            table[index].callback = callback
            table[index].rx_buffer_size = Self.receiveBufferBytes
            table[index].tx_packet_size = Self.sendPieceBytes
            table[index].id = UInt32(index)
        }
        extensions = configuration.allowsCompression ? Self.makeExtensions() : nil
        retry = .allocate(capacity: 1)
        // Without times, libwebsockets sends no pings.
        retry.initialize(to: lws_retry_bo_t())
    }

    private static func makeExtensions() -> UnsafeMutablePointer<lws_extension> {
        let extensions = UnsafeMutablePointer<lws_extension>.allocate(capacity: 2)
        extensions.initialize(repeating: lws_extension(), count: 2)
        extensions[0].name = UnsafePointer(strdup(Compression.name))
        extensions[0].callback = { _, _, _, reason, _, input, _ in
            if reason == LWS_EXT_CB_CONSTRUCT { cws_take_no_options(input) }
            return 0
        }
        return extensions
    }

    deinit {
        table.deallocate()
        extensions.map { free(UnsafeMutablePointer(mutating: $0.pointee.name)) }
        extensions?.deallocate()
        retry.deallocate()
        for name in names {
            free(name)
        }
    }
}
