import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyMQTT

/// Errors between the binding and mosquitto.
@Suite(.exclusive) struct NetworkLoopTests {
    private func agent(
        _ broker: BrokerProcess,
        logger: Logger = Logger(label: "test")
    ) throws -> CommunicationManager {
        try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions(mqttClientOptions: MQTTClientOptions(host: "127.0.0.1", port: broker.port)),
            logger: logger
        )
    }

    /// The broker closes the connection upon a packet that exceeds its limit.
    @Test func subscriptionThatClosesTheConnectionIsOmitted() async throws {
        let broker = try BrokerProcess(extraConfiguration: ["max_packet_size 5000"])
        defer { broker.stop() }
        let agent = try agent(broker)
        agent.start()
        try waitUntil("online") { agent.isOnline }
        let seen = Mutex<[String: [SubscriptionStatus]]>([:])
        let topics = ["a", String(repeating: "x", count: 10_000), "b"]
        let subscriptions = try topics.map { topic in
            let name = topic.count == 1 ? topic : "long"
            return try agent.subscribe(
                rawTopic: topic,
                onStatus: { status in seen.withLock { $0[name, default: []].append(status) } },
                handler: { _ in }
            )
        }
        try waitUntil("the others stand") {
            seen.withLock { $0["long"]?.last == .refused && $0["a"]?.last == .standing && $0["b"]?.last == .standing }
        }
        try waitUntil("online again") { agent.isOnline }
        withExtendedLifetime(subscriptions) {}
        await agent.stop()
    }

    @Test func answersComeWhilePublicationsKeepComing() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let flood = Flood()
        let agent = try agent(broker, logger: Logger(label: "flood") { _ in flood })
        let isOnline = Atomic(false)
        let own = agent.subscribe(
            .discover,
            onStatus: { status in
                isOnline.store(status == .standing, ordering: .releasing)
            }
        ) { _ in }
        agent.start()
        try waitUntil("online") { isOnline.load(ordering: .acquiring) }
        flood.start(agent)
        try waitUntil("more publications than a batch") { flood.count > NetworkLoop.operationBatch }
        let stands = Atomic(false)
        let subscription = try agent.subscribe(
            rawTopic: "t",
            onStatus: { status in stands.store(status == .standing, ordering: .releasing) },
            handler: { _ in }
        )
        defer { flood.stop() }
        try waitUntil("it stands") { stands.load(ordering: .acquiring) }
        flood.stop()
        #expect(agent.statistics.published == 1, "only the identity was published")
        withExtendedLifetime((own, subscription)) {}
        await agent.stop()
    }

    /// The gateway counts sessions, so it must know that a session still exists after waiting for its end was given up.
    @Test func blockedThreadKeepsTheSession() async throws {
        let listener = try FullListener()
        let options = MQTTClientOptions(host: "127.0.0.1", port: listener.port, connectTimeout: .seconds(60))
        let binding = try MQTTBinding(options: options)
        var agent: CommunicationManager? = try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions { _ in binding }
        )
        let before = try listener.waiting
        agent?.start()
        try waitUntil("the thread connects") { try listener.waiting > before }
        // A connection attempt without an answer no longer blocks the thread.
        await agent?.stop()
        weak let held = agent
        agent = nil
        try waitUntil("the thread has ended") { held == nil }
        listener.close()
    }

    @Test func unacknowledgedSubscriptionEndsTheConnection() throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let options = MQTTClientOptions(host: "127.0.0.1", port: broker.port)
        let recorder = ClientRecorder()
        let client = try MosquittoClient(
            clientId: "test",
            version: .v5,
            will: nil,
            options: options,
            delegate: recorder
        )
        try client.connect(to: BrokerAddress(host: "127.0.0.1", port: broker.port))
        try waitUntil("accepted") {
            if client.wantsToWrite { try client.write() }
            try client.read()
            return recorder.isConnected
        }
        let topics = MQTTTopics(namespace: "-", observesAllNamespaces: false, dialect: .plain)
        var subscriptions = MQTTSubscriptions(topics: topics, filtersPerPacket: 8)
        subscriptions.connected()
        func subscribe(_ filter: String, _ ticket: UInt64) throws -> Bool {
            let selector = EventSelector.raw(WireName(filter))
            _ = subscriptions.add([SubscriptionRequest(selector: selector, ticket: ticket, isEssential: false)])
            let next = subscriptions.nextPacket(now: .now)
            let packet = try #require(next)
            return subscriptions.sent(try client.subscribe(packet.filters), keys: packet.keys, now: .now)
        }
        #expect(try subscribe("a", 1))
        // Nothing is read until the packet identifiers wrap around.
        for _ in 1..<Int(UInt16.max) {
            _ = try client.unsubscribe(["t"])
            if client.wantsToWrite {
                try waitUntil("the socket takes it") {
                    try client.write()
                    return !client.wantsToWrite
                }
            }
        }
        #expect(try !subscribe("b", 2))
    }
}

private final class ClientRecorder: MosquittoClientDelegate {
    private(set) var isConnected = false

    func connackReceived(_ code: Int32, _: ConnectionProperties) { isConnected = code == 0 }
    func publicationsWritten(_: Int) {}
    func received(topic _: String, payload _: [UInt8], isRetained _: Bool) {}
    func receivedTooLong(topic _: String, size _: Int) {}
    func subackReceived(_: Int32, isGranted _: [Bool]) {}
    func unsubackReceived(_: Int32) {}
}

/// A log handler that publishes an invalid event whenever the network thread logs the previous one, so that there is
/// always work.
private final class Flood: LogHandler {
    private let agent = Mutex<CommunicationManager?>(nil)
    private let published = Atomic(0)

    var count: Int { published.load(ordering: .relaxed) }

    func start(_ agent: CommunicationManager) {
        self.agent.withLock { $0 = agent }
        publish()
    }

    func stop() { agent.withLock { $0 = nil } }

    private func publish() {
        guard let agent = agent.withLock(\.self) else { return }
        published.add(1, ordering: .relaxed)
        do {
            _ = try agent.session.publish([Publication(.raw(topic: "#", isRetained: false), payload: [])])
        } catch {
            Issue.record(error)
        }
    }

    func log(event: LogEvent) {
        if event.message == "not published" { publish() }
    }

    var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }
    var logLevel: Logger.Level {
        get { .error }
        set {}
    }
    subscript(metadataKey _: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }
}
