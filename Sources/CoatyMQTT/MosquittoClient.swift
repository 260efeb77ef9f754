import CMosquitto
import Coaty
import Foundation
import Logging

/// Why a link to the broker can't be had, or was lost.
enum MQTTLinkError: Error, CustomStringConvertible {
    /// A code of libmosquitto, and the system's where the former is `MOSQ_ERR_ERRNO`.
    case mosquitto(Int32, errno: Int32)
    case refused(Int32)
    case system(String, Int32)
    case noAnswer
    /// mDNS has shown no broker; in words.
    case discovery(String)

    var description: String {
        switch self {
        case .mosquitto(let code, let errno) where code == Int32(MOSQ_ERR_ERRNO.rawValue):
            String(cString: strerror(errno))
        case .mosquitto(let code, _): String(cString: mosquitto_strerror(code))
        case .refused(let code): "refused: " + String(cString: mosquitto_connack_string(code))
        case .system(let call, let code): "\(call): \(String(cString: strerror(code)))"
        case .noAnswer: "the broker does not answer"
        case .discovery(let reason): reason
        }
    }
}

/// One connection to the broker by libmosquitto, used on one thread only: its owner's network thread.
///
/// libmosquitto's own loop is not used: it waits by select(2), which can't take descriptors from 1024 on, and a gateway has
/// many. So the handle is not told of threads, and each publication is written at once where the socket takes it.
final class MosquittoClient {
    /// How many messages are read before others get their turn.
    static let readBatch = 64
    /// The longest payload, in bytes, that is taken from the network; MQTT itself allows 256 MiB.
    static let maximumPayloadSize = 16 << 20
    /// What a SUBACK says of a refused topic filter (MQTT 3.1.1, section 3.9.3).
    private static let subscriptionRefused: Int32 = 0x80

    private(set) var isOpen = false
    /// Whether nothing more is to be carried out.
    private(set) var isLeaving = false
    /// The topic filters that the broker knows, in UTF-8: strings are equal where their bytes are not.
    private var filters: Set<[UInt8]> = []
    /// The SUBSCRIBE packets that the broker has not answered, by their packet identifiers: no more than there are of those.
    private var unacknowledged: [Int32: (ticket: UInt64, filters: [String])] = [:]
    /// The packet that the broker answers before the link is left.
    private var lastUnsubscribe: Int32?
    private var refusal: Int32?
    private let link: Link
    private let logger: Logger
    private let handle: OpaquePointer

    private static let library: Void = {
        mosquitto_lib_init()
    }()

    init(link: Link, options: MQTTClientOptions, logger: Logger) throws(MQTTLinkError) {
        _ = Self.library
        guard let handle = mosquitto_new(link.clientId, true, nil) else { throw .system("mosquitto_new", errno) }
        self.handle = handle
        self.link = link
        self.logger = logger
        mosquitto_user_data_set(handle, Unmanaged.passUnretained(self).toOpaque())
        setCallbacks()
        try configure(options)
    }

    deinit {
        // Closes the socket without DISCONNECT, so that the broker publishes the will.
        mosquitto_destroy(handle)
    }

    private func configure(_ options: MQTTClientOptions) throws(MQTTLinkError) {
        try check(mosquitto_int_option(handle, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V311))
        try check(mosquitto_int_option(handle, MOSQ_OPT_TCP_NODELAY, 1))
        if let will = link.will {
            let length = Int32(will.payload.count)
            try check(mosquitto_will_set(handle, will.topic, length, will.payload, 0, will.shouldRetain))
        }
        if let username = options.username {
            try check(mosquitto_username_pw_set(handle, username, options.password))
        }
        if let tls = options.tls {
            // Without this an encrypted key makes OpenSSL ask for its password on the terminal.
            let noPassword:
                @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 =
                    { _, _, _, _ in 0 }
            if tls.caFile == nil { try check(mosquitto_int_option(handle, MOSQ_OPT_TLS_USE_OS_CERTS, 1)) }
            let directory = tls.caFile == nil ? "/etc/ssl/certs" : nil
            try check(
                mosquitto_tls_set(handle, tls.caFile, directory, tls.certificateFile, tls.keyFile, noPassword)
            )
            try check(mosquitto_tls_insecure_set(handle, false))
        }
    }

    private func setCallbacks() {
        mosquitto_connect_callback_set(handle) { _, context, code in
            MosquittoClient.from(context)?.connected(code)
        }
        mosquitto_publish_callback_set(handle) { _, context, _ in
            MosquittoClient.from(context)?.link.publicationSent()
        }
        mosquitto_message_callback_set(handle) { _, context, message in
            guard let message = message?.pointee, let topic = message.topic, let client = MosquittoClient.from(context)
            else { return }
            guard message.payloadlen <= MosquittoClient.maximumPayloadSize else {
                client.logger.notice("dropped a message that is too long", metadata: ["bytes": "\(message.payloadlen)"])
                return client.link.receivedTooLong()
            }
            let payload = UnsafeRawBufferPointer(start: message.payload, count: Int(message.payloadlen))
            client.link.received(topic: String(cString: topic), payload: Array(payload))
        }
        mosquitto_subscribe_callback_set(handle) { _, context, id, count, granted in
            MosquittoClient.from(context)?.subscribed(id, UnsafeBufferPointer(start: granted, count: Int(count)))
        }
        mosquitto_unsubscribe_callback_set(handle) { _, context, id in
            MosquittoClient.from(context)?.unsubscribed(id)
        }
    }

    private func subscribed(_ id: Int32, _ granted: UnsafeBufferPointer<Int32>) {
        guard let (ticket, filters) = unacknowledged.removeValue(forKey: id) else { return }
        let refused = zip(filters, granted).filter { $0.1 == Self.subscriptionRefused }.map(\.0)
        for filter in refused {
            logger.error("the broker has refused a subscription", metadata: ["topic filter": "\(filter)"])
        }
        link.subscribed(ticket, refused: refused)
    }

    /// The broker has answered, so it has read all that was published, and it sends nothing more. Were anything of it unread
    /// when the socket is closed, the kernel would reset the connection, and the broker would lose what it had not read.
    private func unsubscribed(_ id: Int32) {
        if id == lastUnsubscribe { disconnect() }
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> MosquittoClient? {
        context.map { Unmanaged<MosquittoClient>.fromOpaque($0).takeUnretainedValue() }
    }

    private func connected(_ code: Int32) {
        if code == 0 {
            isOpen = true
            link.opened()
        } else {
            refusal = code
        }
    }

    /// The socket; nil when it is closed.
    var socket: Int32? {
        let socket = mosquitto_socket(handle)
        return socket < 0 ? nil : socket
    }

    /// Whether bytes wait for the socket.
    var wantsToWrite: Bool { mosquitto_want_write(handle) }

    /// Connects; ``isOpen`` turns true with the broker's consent. Blocks until the network has answered.
    func connect(to options: MQTTClientOptions) throws(MQTTLinkError) {
        try check(mosquitto_connect(handle, options.host, Int32(options.port), Int32(options.keepAlive)))
    }

    /// Reads what has come.
    func read() throws(MQTTLinkError) {
        for _ in 0..<Self.readBatch {
            errno = 0
            let code = mosquitto_loop_read(handle, 1)
            let isEmpty = errno == EAGAIN
            if let refusal { throw .refused(refusal) }
            try check(code)
            if isEmpty || socket == nil { break }
        }
        acknowledgeAtOnce()
    }

    /// Writes what waits.
    func write() throws(MQTTLinkError) {
        try check(mosquitto_loop_write(handle, 1))
    }

    /// Keeps the link alive; to be called about once a second.
    func keepAlive() throws(MQTTLinkError) {
        try check(mosquitto_loop_misc(handle))
    }

    /// Hands an operation over, whose bytes are written at once where the socket takes them.
    ///
    /// - Throws: ``MQTTLinkError/mosquitto(_:)`` also for what MQTT can't carry, and then the link is as it was.
    func carryOut(_ operation: LinkOperation) throws(MQTTLinkError) {
        switch operation {
        case .subscribe(let filters, let ticket):
            var id: Int32 = 0
            try withCStrings(filters) { pointers in
                mosquitto_subscribe_multiple(handle, &id, Int32(pointers.count), pointers.baseAddress, 0, 0, nil)
            }
            // The identifiers have gone round since: whoever leaves so much unanswered does not answer at all.
            guard unacknowledged.updateValue((ticket, filters), forKey: id) == nil else { throw .noAnswer }
            self.filters.formUnion(filters.map { Array($0.utf8) })
        case .unsubscribe(let filter):
            try check(mosquitto_unsubscribe(handle, nil, filter))
            filters.remove(Array(filter.utf8))
        case .publish(let publication):
            let length = Int32(clamping: publication.payload.count)
            let payload = publication.payload
            try check(mosquitto_publish(handle, nil, publication.topic, length, payload, 0, publication.shouldRetain))
        case .disconnect:
            isLeaving = true
            guard !filters.isEmpty else { return disconnect() }
            var id: Int32 = 0
            try withCStrings(filters.map { String(decoding: $0, as: UTF8.self) }) { pointers in
                mosquitto_unsubscribe_multiple(handle, &id, Int32(pointers.count), pointers.baseAddress, nil)
            }
            lastUnsubscribe = id
        }
    }

    /// Sends DISCONNECT, upon which the socket is closed.
    func disconnect() {
        lastUnsubscribe = nil
        // It fails only where the link is lost, which the next read tells.
        mosquitto_disconnect(handle)
    }

    private func withCStrings(
        _ strings: [String],
        _ body: (UnsafeMutableBufferPointer<UnsafeMutablePointer<CChar>?>) -> Int32
    ) throws(MQTTLinkError) {
        var pointers = strings.map { strdup($0) }
        defer { for pointer in pointers { free(pointer) } }
        let code = pointers.withUnsafeMutableBufferPointer { body($0) }
        try check(code)
    }

    /// The broker's small packets otherwise wait up to 40 ms for the delayed acknowledgement of the one before. The kernel
    /// forgets the option, so it is set after each read.
    private func acknowledgeAtOnce() {
        #if os(Linux)
            guard let socket else { return }
            var on: Int32 = 1
            setsockopt(socket, Int32(IPPROTO_TCP), TCP_QUICKACK, &on, socklen_t(MemoryLayout<Int32>.size))
        #endif
    }

    private func check(_ code: Int32) throws(MQTTLinkError) {
        guard code == Int32(MOSQ_ERR_SUCCESS.rawValue) else { throw .mosquitto(code, errno: errno) }
    }
}

extension MQTTLinkError {
    /// Whether the operation was at fault and not the link.
    var isOperationAtFault: Bool {
        guard case .mosquitto(let code, _) = self else { return false }
        let faults = [
            MOSQ_ERR_INVAL, MOSQ_ERR_PAYLOAD_SIZE, MOSQ_ERR_MALFORMED_UTF8, MOSQ_ERR_OVERSIZE_PACKET,
            MOSQ_ERR_NOT_SUPPORTED,
        ]
        return faults.contains { Int32($0.rawValue) == code }
    }
}
