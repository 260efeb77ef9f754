import CMosquitto
public import Foundation

/// A small MQTT 3.1.1 client, independent of the code under test, that records what it receives.
///
///     let client = try MQTTTestClient(port: broker.port)
///     try client.subscribe("coaty/3/-/ADV:Identity/+")
///     let message = try client.waitFor { $0.topic.hasSuffix(id) }
///
/// All methods block for a bounded time.
///
/// `@unchecked Sendable`: `handle` is created in the initializer and destroyed in `deinit`. In between it is only
/// passed to libmosquitto functions that may be called from any thread while its network thread runs.
public final class MQTTTestClient: @unchecked Sendable {
    /// A received PUBLISH.
    public struct Message: Sendable, Hashable, CustomStringConvertible {
        /// The topic that it was published to.
        public let topic: String
        /// The received bytes.
        public let payload: [UInt8]
        /// Whether the broker sent it as a retained message.
        public let retain: Bool

        /// The payload as text.
        public var text: String { String(decoding: payload, as: UTF8.self) }

        /// The message in one line.
        public var description: String { "\(topic) \(text)\(retain ? " (retained)" : "")" }
    }

    /// Maximum time in seconds of one step of the client: connecting, SUBACK, PUBACK, a message. It is generous, for busy
    /// machines and for brokers that notice a dead client after one and a half keepalives.
    public static let limit: TimeInterval = 30

    private static let library: Int32 = mosquitto_lib_init()

    private let handle: OpaquePointer
    private let inbox = Inbox()

    /// Connects with a clean session, and returns when the broker has accepted the connection.
    ///
    /// - Parameters:
    ///   - host: A name or numeric address.
    ///   - port: The broker's port.
    ///   - clientID: The client identifier; nil to let the broker choose one.
    ///   - username: The user name for the broker, with `password`.
    ///   - password: See `username`.
    ///   - caFile: The path of a PEM file with the certificate of the broker's authority. If set, the client uses TLS.
    ///   - will: The message that the broker publishes when the connection breaks.
    /// - Throws: ``TestSupportError``, also with the broker's reason for a refusal.
    public init(
        host: String = "127.0.0.1",
        port: UInt16,
        clientID: String? = nil,
        username: String? = nil,
        password: String? = nil,
        caFile: String? = nil,
        will: (topic: String, payload: [UInt8])? = nil
    ) throws {
        guard Self.library == MOSQ_ERR_SUCCESS.rawValue, let handle = mosquitto_new(clientID, true, nil) else {
            throw TestSupportError("libmosquitto cannot be initialized")
        }
        self.handle = handle
        // The network thread holds the inbox only. If it held the last reference to the client, `deinit` would run on
        // that thread and wait for the thread's own end.
        mosquitto_user_data_set(handle, Unmanaged.passUnretained(inbox).toOpaque())
        mosquitto_connect_callback_set(handle) { _, context, reason in
            Inbox.from(context)?.update {
                $0.connectReason = reason
                $0.isConnected = reason == 0
            }
        }
        mosquitto_disconnect_callback_set(handle) { _, context, _ in
            Inbox.from(context)?.update { $0.isConnected = false }
        }
        mosquitto_subscribe_callback_set(handle) { _, context, id, _, _ in
            Inbox.from(context)?.update { _ = $0.acknowledged.insert(id) }
        }
        mosquitto_publish_callback_set(handle) { _, context, id in
            Inbox.from(context)?.update { _ = $0.acknowledged.insert(id) }
        }
        mosquitto_message_callback_set(handle) { _, context, message in
            guard let message = message?.pointee, let topic = message.topic else { return }
            let payload = UnsafeRawBufferPointer(start: message.payload, count: Int(message.payloadlen))
            let received = Message(topic: String(cString: topic), payload: Array(payload), retain: message.retain)
            Inbox.from(context)?.update { $0.messages.append(received) }
        }
        if let username { try Self.check(mosquitto_username_pw_set(handle, username, password), "user name") }
        if let caFile { try Self.check(mosquitto_tls_set(handle, caFile, nil, nil, nil, nil), "TLS") }
        if let will {
            let count = Int32(will.payload.count)
            try Self.check(mosquitto_will_set(handle, will.topic, count, will.payload, 0, false), "will")
        }
        mosquitto_int_option(handle, MOSQ_OPT_TCP_NODELAY, 1)
        try Self.check(mosquitto_connect(handle, host, Int32(port), 60), "connect to \(host):\(port)")
        try Self.check(mosquitto_loop_start(handle), "network thread")
        try inbox.wait(for: "CONNACK") { $0.connectReason != nil }
        if let reason = inbox.locked({ $0.connectReason }), reason != 0 {
            throw TestSupportError("broker refused: \(String(cString: mosquitto_connack_string(reason)))")
        }
    }

    deinit {
        mosquitto_disconnect(handle)
        mosquitto_loop_stop(handle, false)
        mosquitto_destroy(handle)
    }

    /// All messages received so far, in order.
    public var messages: [Message] { inbox.locked { $0.messages } }

    /// Whether the client is connected; it reconnects by itself.
    public var isConnected: Bool { inbox.locked { $0.isConnected } }

    /// Subscribes, and returns after the SUBACK.
    ///
    /// - Throws: ``TestSupportError``
    public func subscribe(_ filter: String, qos: Int32 = 0) throws {
        var id: Int32 = 0
        try Self.check(mosquitto_subscribe(handle, &id, filter, qos), "subscribe \(filter)")
        try inbox.wait(for: "SUBACK of \(filter)") { [id] in $0.acknowledged.remove(id) != nil }
    }

    /// Publishes a message, and returns when it was sent (QoS 0) or acknowledged.
    ///
    /// - Throws: ``TestSupportError``
    public func publish(_ topic: String, _ payload: [UInt8], retain: Bool = false, qos: Int32 = 0) throws {
        var id: Int32 = 0
        let count = Int32(payload.count)
        try Self.check(mosquitto_publish(handle, &id, topic, count, payload, qos, retain), "publish \(topic)")
        try inbox.wait(for: "completion of publish \(topic)") { [id] in $0.acknowledged.remove(id) != nil }
    }

    /// Publishes text.
    ///
    /// - Throws: ``TestSupportError``
    public func publish(_ topic: String, _ text: String, retain: Bool = false, qos: Int32 = 0) throws {
        try publish(topic, Array(text.utf8), retain: retain, qos: qos)
    }

    /// Returns the first received message that matches, and waits up to `limit` seconds for it.
    ///
    /// - Throws: ``TestSupportError`` with the messages that did arrive.
    @discardableResult
    public func waitFor(
        within limit: TimeInterval = MQTTTestClient.limit,
        matching matches: (Message) -> Bool
    ) throws -> Message {
        var found: Message?
        try inbox.wait(for: "matching message", within: limit) { record in
            found = record.messages.first(where: matches)
            return found != nil
        }
        guard let found else { throw TestSupportError("unreachable: the wait ended without a message") }
        return found
    }

    /// Waits until `count` messages have been received, and returns the first `count`.
    ///
    /// - Throws: ``TestSupportError`` with the messages that did arrive.
    @discardableResult
    public func waitFor(count: Int, within limit: TimeInterval = MQTTTestClient.limit) throws -> [Message] {
        try inbox.wait(for: "\(count) messages", within: limit) { $0.messages.count >= count }
        return Array(messages.prefix(count))
    }

    private static func check(_ code: Int32, _ what: String) throws {
        guard code == MOSQ_ERR_SUCCESS.rawValue else {
            throw TestSupportError("\(what): \(String(cString: mosquitto_strerror(code)))")
        }
    }
}

/// The state that the network thread records for the test.
///
/// `@unchecked Sendable`: `record` is accessed only while `condition` is locked.
private final class Inbox: @unchecked Sendable {
    struct Record {
        var connectReason: Int32?
        var isConnected = false
        // Identifiers have 16 bits and are reused; the wait for an identifier removes it.
        var acknowledged: Set<Int32> = []
        var messages: [MQTTTestClient.Message] = []
    }

    private let condition = NSCondition()
    private var record = Record()

    /// Returns the inbox behind a context. The client retains it until the network thread has ended.
    static func from(_ context: UnsafeMutableRawPointer?) -> Inbox? {
        context.map { Unmanaged<Inbox>.fromOpaque($0).takeUnretainedValue() }
    }

    func locked<R>(_ body: (Record) -> R) -> R {
        condition.lock()
        defer { condition.unlock() }
        return body(record)
    }

    func update(_ body: (inout Record) -> Void) {
        condition.lock()
        body(&record)
        condition.broadcast()
        condition.unlock()
    }

    func wait(
        for what: String,
        within limit: TimeInterval = MQTTTestClient.limit,
        until isDone: (inout Record) -> Bool
    ) throws {
        let deadline = Date(timeIntervalSinceNow: limit)
        condition.lock()
        defer { condition.unlock() }
        while !isDone(&record) {
            guard condition.wait(until: deadline) else {
                let arrived = record.messages.map { "  \($0)" }.joined(separator: "\n")
                throw TestSupportError(
                    "no \(what) within \(limit) s; \(record.messages.count) messages arrived:\n\(arrived)"
                )
            }
        }
    }
}
