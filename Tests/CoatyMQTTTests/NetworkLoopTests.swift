import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyMQTT

/// What goes wrong between the binding and a real mosquitto.
@Suite struct NetworkLoopTests {
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

    /// The broker cuts the link upon a packet that is too long for it.
    @Test func leavesOutASubscriptionUponWhichTheBrokerCutsTheLink() async throws {
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
        #expect(agent.isOnline)
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
        let stands = Atomic(false)
        let subscription = try agent.subscribe(
            rawTopic: "t",
            onStatus: { status in stands.store(status == .standing, ordering: .releasing) },
            handler: { _ in }
        )
        defer { flood.stop() }
        try waitUntil("it stands") { stands.load(ordering: .acquiring) }
        #expect(flood.count > NetworkLoop.operationBatch)
        flood.stop()
        #expect(agent.statistics.published == 1, "the identity, and nothing that can't be published")
        withExtendedLifetime((own, subscription)) {}
        await agent.stop()
    }

    /// Who counts links must know that one is still there when leaving it was given up.
    @Test func aThreadThatIsHeldBackKeepsTheLink() async throws {
        let listener = try FullListener()
        let binding = try MQTTBinding(options: MQTTClientOptions(host: "127.0.0.1", port: listener.port))
        var link: Link? = Link(
            id: CoatyUUID(),
            will: nil,
            outbox: Outbox(limits: OutboxLimits()),
            events: NoDelegate()
        )
        weak let held = link
        let before = try listener.waiting
        if let link { binding.join(link) }
        link = nil
        try waitUntil("the thread is held back") { try listener.waiting > before }
        await binding.leave()
        #expect(held != nil)
        listener.close()
        try waitUntil("the thread ends") { held == nil }
    }

    @Test func takesABrokerThatLeavesASubscriptionUnansweredForLost() throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let binding = LinkHolder()
        let agent = try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions { _ in binding }
        )
        agent.start()
        let link = try #require(binding.link)
        let options = MQTTClientOptions(host: "127.0.0.1", port: broker.port)
        let client = try MosquittoClient(link: link, options: options, logger: Logger(label: "test"))
        try client.connect(to: options)
        try waitUntil("accepted") {
            try client.read()
            return client.isOpen
        }
        try client.carryOut(.subscribe(["a"], ticket: 1))
        let publication = Publication(topic: "t", payload: [])
        // Nothing is read, until the packet identifiers have gone round.
        for _ in 1..<Int(UInt16.max) {
            try client.carryOut(.publish(publication))
            if client.wantsToWrite {
                try waitUntil("the socket takes it") {
                    try client.write()
                    return !client.wantsToWrite
                }
            }
        }
        let error = #expect(throws: MQTTLinkError.self) { try client.carryOut(.subscribe(["b"], ticket: 2)) }
        guard case .noAnswer = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }
}

private final class NoDelegate: LinkDelegate {
    func linkOpened() {}
    func linkClosed() {}
    func subscribed(_: UInt64, refused _: [String]) {}
    func received(topic _: String, payload _: [UInt8]) {}
}

/// A binding that does nothing.
private final class LinkHolder: Binding {
    private let joined = Mutex<Link?>(nil)

    var link: Link? { joined.withLock(\.self) }

    func join(_ link: Link) { joined.withLock { $0 = link } }
    func wake() {}
    func leave() async {}
}

/// Publishes what can't be published, again each time when the network thread says so: so there always is something to do.
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
            _ = try agent.publish([Publication(topic: "#", payload: [])])
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
