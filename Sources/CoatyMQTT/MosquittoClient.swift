import CMosquitto
import Coaty
import Foundation

/// The error of a failed call of libmosquitto.
struct MosquittoError: Error {
    /// A code of libmosquitto.
    let code: Int32
    /// The system's error code, if `code` is `MOSQ_ERR_ERRNO`.
    let errno: Int32

    init(code: Int32, errno: Int32) {
        self.code = code
        self.errno = errno
    }

    /// An error of the socket.
    init(connection errno: Int32) {
        self.init(code: Int32((errno == ECONNRESET ? MOSQ_ERR_CONN_LOST : MOSQ_ERR_ERRNO).rawValue), errno: errno)
    }

    /// Whether the operation, rather than the connection, is the cause.
    var isOperationAtFault: Bool {
        [
            MOSQ_ERR_INVAL, MOSQ_ERR_PAYLOAD_SIZE, MOSQ_ERR_MALFORMED_UTF8, MOSQ_ERR_OVERSIZE_PACKET,
            MOSQ_ERR_NOT_SUPPORTED, MOSQ_ERR_RETAIN_NOT_SUPPORTED,
        ]
        .contains { Int32($0.rawValue) == code }
    }
}

/// Receives the events of a client. Called on the thread that uses the client.
protocol MosquittoClientDelegate: AnyObject {
    /// Called when the broker has accepted the connection with code 0 and its limits, or has refused it with another code
    /// (MQTT 3.1.1, section 3.2.2.3; MQTT 5, section 3.2.2.2).
    func connackReceived(_ code: Int32, _ properties: ConnectionProperties)
    func publicationsWritten(_ count: Int)
    /// - Parameter isRetained: whether the broker had kept the message, and sends it because of a new subscription.
    func received(topic: String, payload: [UInt8], isRetained: Bool)
    /// Called when a message was dropped because it is longer than ``MQTTClientOptions/maximumMessageSize``.
    func receivedTooLong(topic: String, size: Int)
    func subackReceived(_ packet: Int32, isGranted: [Bool])
    func unsubackReceived(_ packet: Int32)
}

/// When bytes of publications have passed, which libmosquitto did not read or write.
private struct Passed {
    private var received = (bytes: 0, time: ContinuousClock.now)
    private var sent = (bytes: 0, time: ContinuousClock.now)

    /// Records the numbers of bytes so far.
    mutating func note(received receivedBytes: Int, sent sentBytes: Int) {
        let now = ContinuousClock.now
        if received.bytes != receivedBytes { received = (receivedBytes, now) }
        if sent.bytes != sentBytes { sent = (sentBytes, now) }
    }

    /// Returns whether bytes were received within a time.
    func hasReceived(within time: Duration) -> Bool { .now < received.time + time }

    /// Returns whether bytes have passed in both directions within a time, so that no ping is needed.
    func isRecent(within time: Duration) -> Bool { hasReceived(within: time) && .now < sent.time + time }
}

/// One connection to a broker with libmosquitto, used on only one thread.
///
/// libmosquitto's own loop is not used: it uses select(2), which does not support descriptors above 1023, and a gateway
/// has many. Therefore the handle does not use threads, and each packet is written immediately if the socket accepts
/// it. Without TLS, publications are written and read without libmosquitto (``PublicationWriter``,
/// ``PublicationReader``).
final class MosquittoClient {
    /// Maximum number of packets in one turn of reading. Between turns, operations are carried out, and the loss of
    /// messages is watched for.
    static let readBatch = 64
    /// The same without TLS: the number of reads of at most ``PublicationReader/bufferSize``.
    static let readsInTurn = 4
    /// The lowest SUBACK code for a refused filter (MQTT 3.1.1, section 3.9.3; MQTT 5, section 3.9.3).
    private static let subscriptionRefused: Int32 = 0x80

    private unowned let delegate: any MosquittoClientDelegate
    private let handle: OpaquePointer
    private let maximumMessageSize: Int
    private let version: MQTTVersion
    private var keepAliveTime: Duration
    /// Maximum size of a publication's packet.
    private let maximumPublicationSize: Int
    /// The code of the broker's DISCONNECT packet; nil if there was none.
    private(set) var disconnectReason: Int32?
    private let tls: MQTTClientOptions.TLSOptions?
    /// Maximum number of bytes that may arrive of an incomplete packet.
    private let maximumPacketBytes: Int
    private var progress = PacketProgress()
    /// Nil with TLS.
    private var writer: PublicationWriter?
    /// Nil with TLS, and if the broker does not keep to QoS 0.
    private var reader: PublicationReader?
    private var passed = Passed()
    /// Whether the broker has accepted the connection.
    private var isAccepted = false
    /// Whether a packet has arrived during the current read.
    private var hasReadPacket = false
    /// The TLS errors that libmosquitto and OpenSSL have reported.
    private(set) var diagnosis = TLSDiagnosis()
    private let noted: UnsafeMutablePointer<cmosq_handshake>
    /// What is known of the TLS handshake.
    var handshake: cmosq_handshake { noted.pointee }

    private static let library: Void = {
        mosquitto_lib_init()
    }()

    /// - Parameters:
    ///   - version: not ``MQTTVersion/auto``.
    ///   - delegate: must outlive the client.
    init(
        clientId: String,
        version: MQTTVersion,
        will: (topic: String, payload: [UInt8])?,
        options: MQTTClientOptions,
        delegate: any MosquittoClientDelegate
    ) throws(MosquittoError) {
        _ = Self.library
        guard let handle = mosquitto_new(clientId, true, nil) else {
            throw MosquittoError(code: Int32(MOSQ_ERR_ERRNO.rawValue), errno: errno)
        }
        self.handle = handle
        noted = .allocate(capacity: 1)
        noted.initialize(to: cmosq_handshake())
        self.delegate = delegate
        self.version = version
        maximumPublicationSize = options.maximumPublicationSize
        maximumMessageSize = options.maximumMessageSize
        // The framing of TLS counts, too.
        maximumPacketBytes = options.maximumPacketSize + (options.tls == nil ? 0 : options.maximumPacketSize / 50)
        tls = options.tls
        keepAliveTime = .seconds(max(options.keepAlive, MQTTClientOptions.minimumKeepAlive))
        writer = options.tls == nil ? PublicationWriter(version: version) : nil
        reader =
            options.tls == nil
            ? PublicationReader(
                version: version,
                maximumPacketSize: options.maximumPacketSize,
                maximumMessageSize: options.maximumMessageSize
            ) : nil
        mosquitto_user_data_set(handle, Unmanaged.passUnretained(self).toOpaque())
        setCallbacks()
        try configure(options, will)
    }

    deinit {
        // Closes the socket without DISCONNECT, so that the broker publishes the last will.
        mosquitto_destroy(handle)
        noted.deallocate()
    }

    private func configure(
        _ options: MQTTClientOptions,
        _ will: (topic: String, payload: [UInt8])?
    ) throws(MosquittoError) {
        try check(
            mosquitto_int_option(
                handle,
                MOSQ_OPT_PROTOCOL_VERSION,
                version == .v5 ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311
            )
        )
        try check(mosquitto_int_option(handle, MOSQ_OPT_TCP_NODELAY, 1))
        if let will {
            try check(mosquitto_will_set(handle, will.topic, Int32(will.payload.count), will.payload, 0, false))
        }
        if let username = options.username {
            try check(mosquitto_username_pw_set(handle, username, options.password))
        }
    }

    private func setCallbacks() {
        mosquitto_connect_v5_callback_set(handle) { _, context, code, _, properties in
            guard let client = MosquittoClient.packet(context) else { return }
            client.isAccepted = code == 0
            client.delegate.connackReceived(code, code == 0 ? client.accepted(properties) : ConnectionProperties())
        }
        mosquitto_disconnect_callback_set(handle) { _, context, code in
            guard let client = MosquittoClient.from(context) else { return }
            // Lower codes are errors of libmosquitto.
            if code >= DisconnectReason.firstError { client.disconnectReason = code }
        }
        mosquitto_publish_callback_set(handle) { _, context, _ in
            MosquittoClient.from(context)?.delegate.publicationsWritten(1)
        }
        mosquitto_message_callback_set(handle) { _, context, message in
            guard let message = message?.pointee, let topic = message.topic.map({ String(cString: $0) }),
                let client = MosquittoClient.packet(context)
            else { return }
            guard message.payloadlen <= client.maximumMessageSize else {
                return client.delegate.receivedTooLong(topic: topic, size: Int(message.payloadlen))
            }
            let payload = UnsafeRawBufferPointer(start: message.payload, count: Int(message.payloadlen))
            client.delegate.received(topic: topic, payload: Array(payload), isRetained: message.retain)
        }
        mosquitto_subscribe_callback_set(handle) { _, context, id, count, granted in
            let granted = UnsafeBufferPointer(start: granted, count: Int(count))
            MosquittoClient.packet(context)?.delegate.subackReceived(
                id,
                isGranted: granted.map { $0 < MosquittoClient.subscriptionRefused }
            )
        }
        mosquitto_unsubscribe_callback_set(handle) { _, context, id in
            MosquittoClient.packet(context)?.delegate.unsubackReceived(id)
        }
        mosquitto_log_callback_set(handle) { handle, context, level, text in
            guard level == MOSQ_LOG_ERR, let text, let client = MosquittoClient.from(context) else { return }
            let connection = mosquitto_ssl_get(handle).map(OpaquePointer.init)
            client.diagnosis.note(String(cString: text), verification: connection.map(SSL_get_verify_result))
        }
    }

    /// Returns what the broker has stated in its CONNACK, and complies with it.
    private func accepted(_ list: OpaquePointer?) -> ConnectionProperties {
        var properties = ConnectionProperties()
        properties.protocolVersion = version.rawValue
        guard version == .v5 else {
            properties.maximumPacketSize = maximumPublicationSize
            writer?.maximumPacketSize = maximumPublicationSize
            return properties
        }
        var (size, seconds, flag) = (UInt32(0), UInt16(0), UInt8(0))
        if mosquitto_property_read_int32(list, Int32(MQTT_PROP_MAXIMUM_PACKET_SIZE.rawValue), &size, false) != nil,
            size > 0
        {
            properties.maximumPacketSize = Int(size)
            writer?.maximumPacketSize = Int(size)
        }
        // libmosquitto uses it for its pings.
        if mosquitto_property_read_int16(list, Int32(MQTT_PROP_SERVER_KEEP_ALIVE.rawValue), &seconds, false) != nil {
            properties.keepAlive = Int(seconds)
            if seconds > 0 { keepAliveTime = .seconds(seconds) }
        }
        if mosquitto_property_read_byte(list, Int32(MQTT_PROP_RETAIN_AVAILABLE.rawValue), &flag, false) != nil {
            properties.isRetainAvailable = flag != 0
            writer?.isRetainAvailable = flag != 0
        }
        if mosquitto_property_read_byte(list, Int32(MQTT_PROP_WILDCARD_SUB_AVAILABLE.rawValue), &flag, false) != nil {
            properties.areWildcardsAvailable = flag != 0
        }
        return properties
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> MosquittoClient? {
        context.map { Unmanaged<MosquittoClient>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Returns the client of a callback, and records that it has received a packet.
    private static func packet(_ context: UnsafeMutableRawPointer?) -> MosquittoClient? {
        let client = from(context)
        client?.hasReadPacket = true
        return client
    }

    /// The socket; nil when it is closed.
    var socket: Int32? {
        let socket = mosquitto_socket(handle)
        return socket < 0 ? nil : socket
    }

    /// Whether bytes are queued for the socket.
    var wantsToWrite: Bool { writer?.hasBytes == true || mosquitto_want_write(handle) }

    /// Whether to read. libmosquitto may answer a packet that it reads, which must not divide a publication of which
    /// the socket has accepted a part.
    var wantsToRead: Bool { reader != nil || writer?.isBlocked != true }

    /// Whether the socket has not accepted all bytes of the last write.
    var isBlocked: Bool { writer?.isBlocked == true || mosquitto_want_write(handle) }

    /// Whether an operation queues bytes until ``write()``, rather than writing them at once.
    func isQueued(_ operation: SessionOperation) -> Bool {
        if case .publish = operation { writer != nil } else { false }
    }

    /// Starts to connect; the delegate is called when the broker has accepted the connection. Does not block.
    func connect(to address: BrokerAddress) throws(MosquittoError) {
        if let tls {
            try TLSContext.use(tls, for: address, on: handle, noting: noted) {
                diagnosis.note($0, verification: nil)
            }
        }
        let code = mosquitto_connect_async(
            handle,
            address.numeric ?? address.host,
            Int32(address.port),
            Int32(keepAliveTime / .seconds(1))
        )
        // A pending connection is the expected result.
        if code != Int32(MOSQ_ERR_CONN_PENDING.rawValue) { try check(code) }
    }

    /// Reads the available bytes.
    ///
    /// - Throws: `MOSQ_ERR_OVERSIZE_PACKET` if a packet that libmosquitto reads is longer than accepted.
    func read() throws(MosquittoError) {
        guard wantsToRead else { return }
        if let reader, isAccepted { try read(with: reader) } else { try readPackets() }
        acknowledgeAtOnce()
    }

    private func read(with reader: PublicationReader) throws(MosquittoError) {
        for _ in 0..<Self.readsInTurn {
            guard let socket else { return }
            switch try reader.read(socket, for: delegate) {
            case .nothing: return
            case .more: continue
            case .other: try check(mosquitto_loop_read(handle, 1))
            case .qualityOfService: return self.reader = nil
            }
        }
    }

    private func readPackets() throws(MosquittoError) {
        hasReadPacket = false
        for _ in 0..<Self.readBatch {
            errno = 0
            let code = mosquitto_loop_read(handle, 1)
            let isEmpty = errno == EAGAIN
            try check(code)
            if isEmpty || socket == nil { break }
            hasReadPacket = true
            // libmosquitto must not read the beginning of a publication that the reader continues.
            if reader != nil, isAccepted { break }
        }
        try checkProgress()
    }

    private func checkProgress() throws(MosquittoError) {
        guard !hasReadPacket, let socket else { return progress.complete() }
        guard let bytesRead = ReceiveBuffer(socket: socket).bytesRead else { return }
        if progress.bytes(bytesRead) > maximumPacketBytes {
            throw MosquittoError(code: Int32(MOSQ_ERR_OVERSIZE_PACKET.rawValue), errno: 0)
        }
    }

    /// Lets the kernel collect the packets that follow, or sends the collected ones.
    func setCorked(_ isCorked: Bool) {
        #if os(Linux)
            guard let socket else { return }
            var isOn: Int32 = isCorked ? 1 : 0
            setsockopt(socket, Int32(IPPROTO_TCP), TCP_CORK, &isOn, socklen_t(MemoryLayout<Int32>.size))
        #endif
    }

    /// Writes the queued bytes, as many as the socket accepts. Call it before other packets than publications are sent;
    /// these can't be sent while ``wantsToWrite``.
    func write() throws(MosquittoError) {
        if mosquitto_want_write(handle) || !isAccepted { try check(mosquitto_loop_write(handle, 1)) }
        guard writer?.hasBytes == true, let socket, !mosquitto_want_write(handle) else { return }
        if let count = try writer?.send(to: socket), count > 0 { delegate.publicationsWritten(count) }
    }

    /// Writes the queued publications if they are so many that they should not wait for more.
    func writeIfFull() throws(MosquittoError) {
        if writer?.isFull == true { try write() }
    }

    /// Sends pings and checks that they are answered. Call it about once a second.
    func keepAlive() throws(MosquittoError) {
        if let writer, let reader { passed.note(received: reader.receivedBytes, sent: writer.sentBytes) }
        if let writer, writer.isBlocked {
            // A ping would divide a publication of which the socket has accepted a part. A broker that still sends
            // publications is only slow, and gets more time.
            let isSilent = reader != nil && !passed.hasReceived(within: keepAliveTime * 2)
            guard writer.stalled > keepAliveTime * (isSilent ? 1 : 2) else { return }
            throw MosquittoError(code: Int32(MOSQ_ERR_KEEPALIVE.rawValue), errno: 0)
        }
        // Bytes may have passed up to two seconds before this is called.
        if reader != nil, passed.isRecent(within: keepAliveTime / 2) { return }
        try check(mosquitto_loop_misc(handle))
    }

    /// Sends a SUBSCRIBE packet.
    ///
    /// - Returns: its packet identifier.
    func subscribe(_ filters: [String]) throws(MosquittoError) -> Int32 {
        var id: Int32 = 0
        try withCStrings(filters) { pointers in
            mosquitto_subscribe_multiple(handle, &id, Int32(pointers.count), pointers.baseAddress, 0, 0, nil)
        }
        return id
    }

    /// Sends an UNSUBSCRIBE packet.
    ///
    /// - Returns: its packet identifier.
    func unsubscribe(_ filters: [String]) throws(MosquittoError) -> Int32 {
        var id: Int32 = 0
        try withCStrings(filters) { pointers in
            mosquitto_unsubscribe_multiple(handle, &id, Int32(pointers.count), pointers.baseAddress, nil)
        }
        return id
    }

    /// Queues a publication, which ``write()`` sends. Call ``writeIfFull()`` after it. With TLS, it is written
    /// immediately if the socket accepts it.
    func publish(_ topic: String, _ payload: [UInt8], isRetained: Bool) throws(MosquittoError) {
        guard writer == nil else {
            try writer?.append(topic, payload, isRetained: isRetained)
            return
        }
        try check(
            mosquitto_publish(handle, nil, topic, Int32(clamping: payload.count), payload, 0, isRetained)
        )
    }

    /// Sends DISCONNECT, after which the socket is closed.
    func disconnect() {
        // This fails only if the connection is lost, which the next read reports.
        mosquitto_disconnect(handle)
    }

    private func withCStrings(
        _ strings: [String],
        _ body: (UnsafeMutableBufferPointer<UnsafeMutablePointer<CChar>?>) -> Int32
    ) throws(MosquittoError) {
        var pointers = strings.map { strdup($0) }
        defer { for pointer in pointers { free(pointer) } }
        let code = pointers.withUnsafeMutableBufferPointer { body($0) }
        try check(code)
    }

    /// Disables delayed acknowledgements, with which the broker's small packets wait up to 40 ms. The kernel resets the
    /// option, so it is set after each read.
    private func acknowledgeAtOnce() {
        #if os(Linux)
            guard let socket else { return }
            var on: Int32 = 1
            setsockopt(socket, Int32(IPPROTO_TCP), TCP_QUICKACK, &on, socklen_t(MemoryLayout<Int32>.size))
        #endif
    }

    private func check(_ code: Int32) throws(MosquittoError) {
        guard code == Int32(MOSQ_ERR_SUCCESS.rawValue) else { throw MosquittoError(code: code, errno: errno) }
    }
}
