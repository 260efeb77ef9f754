import Coaty
import CoatyMQTT
import Foundation
import Synchronization
import TestSupport
import Testing

/// The MQTT binding, with mosquitto.
@Suite(.exclusive) struct MQTTBindingTests {
    private func agent(
        _ options: MQTTClientOptions,
        limits: OutboxLimits = OutboxLimits()
    ) throws -> CommunicationManager {
        try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions(outboxLimits: limits, mqttClientOptions: options)
        )
    }

    private func local(_ broker: BrokerProcess) -> MQTTClientOptions {
        MQTTClientOptions(host: "127.0.0.1", port: broker.port)
    }

    private func channel(_ name: String) throws -> ChannelEvent {
        let object = CoatyObject(coreType: .CoatyObject, objectType: "t", objectId: .init(), name: name)
        return try .with(object: object, channelId: "c")
    }

    @Test func joinsAndLeaves() async throws {
        let broker = try BrokerProcess(extraConfiguration: ["log_type all"])
        defer { broker.stop() }
        let observer = try MQTTTestClient(port: broker.port)
        try observer.subscribe("coaty/#")
        let agent = try agent(local(broker))
        agent.start()
        let joined = try observer.waitFor { $0.topic == "coaty/3/-/ADV:Identity/\(agent.identityId)" }
        #expect(!joined.retain)
        let clientId = "Coaty" + agent.identityId.string.replacing("-", with: "").prefix(18)
        // p2: MQTT 3.1.1; c1: clean session; k10: keepalive.
        #expect(broker.log.contains("as \(clientId) (p2, c1, k10)"))
        await agent.stop()
        _ = try observer.waitFor { $0.topic == "coaty/3/-/DAD/\(agent.identityId)" }
        try waitUntil("the broker sees DISCONNECT") { broker.log.contains("Received DISCONNECT from \(clientId)") }
        #expect(observer.messages.count == 2, "the will is not published as well")

        agent.start()
        try waitUntil("it joins again") { observer.messages.filter { $0.topic.contains("/ADV:Identity/") }.count == 2 }
        await agent.stop()
    }

    @Test func lastPublicationsAreDeliveredBeforeLeaving() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let observer = try MQTTTestClient(port: broker.port)
        try observer.subscribe("coaty/#")
        let agent = try agent(local(broker))
        // Events that the agent receives are still unread when it leaves.
        let subscription = agent.subscribe(try .channel("c")) { _ in }
        agent.start()
        try waitUntil("online") { agent.isOnline }
        let events = try (0..<2000).map { try channel("\($0)") }
        for event in events { _ = try agent.publishChannel(event) }
        await agent.stop()
        subscription.cancel()
        let clientId = "Coaty" + agent.identityId.string.replacing("-", with: "").prefix(18)
        try waitUntil("an orderly end") { broker.log.contains("Client \(clientId) disconnected.") }
        // A will would be published before this message.
        try observer.publish("coaty/end", "")
        _ = try observer.waitFor { $0.topic == "coaty/end" }
        let topics = observer.messages.map(\.topic)
        let own = "/\(agent.identityId)"
        #expect(topics.filter { $0.hasSuffix(own) && $0.contains("/CHN:c/") }.count == events.count)
        #expect(topics.filter { $0.hasSuffix(own) && $0.contains("/DAD/") }.count == 1)
        #expect(topics.suffix(2) == ["coaty/3/-/DAD\(own)", "coaty/end"])
    }

    @Test(.timeLimit(.minutes(1))) func stopsWhileTheBrokerDoesNotAnswer() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let observer = try MQTTTestClient(port: broker.port)
        try observer.subscribe("coaty/#")
        let agent = try agent(local(broker))
        agent.start()
        _ = try observer.waitFor { $0.topic.contains("/ADV:Identity/") }
        let pid = try #require(broker.pid)
        kill(pid, SIGSTOP)
        _ = try agent.publishChannel(channel("last"))
        await agent.stop()
        kill(pid, SIGCONT)
        _ = try observer.waitFor { $0.text.contains("last") }
        _ = try observer.waitFor { $0.topic == "coaty/3/-/DAD/\(agent.identityId)" }
    }

    @Test func reconnectsAfterBrokerRestart() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let agent = try agent(local(broker))
        let seen = Mutex<[String]>([])
        let subscription = agent.subscribe(try .channel("c")) { event in
            let name = (try? event.data.object?.name) ?? ""
            seen.withLock { $0.append(name) }
        }
        agent.start()
        try waitUntil("online") { agent.isOnline }
        for round in 0..<3 {
            broker.kill()
            try waitUntil("offline") { !agent.isOnline }
            for number in 0..<10 {
                #expect(try agent.publishChannel(channel("\(round).\(number)")) == .deferred)
            }
            try broker.restart()
            try waitUntil("all arrive") { seen.withLock(\.count) == (round + 1) * 10 }
            // The deferred events have been published by then.
            try waitUntil("online again") { agent.isOnline }
        }
        #expect(seen.withLock(\.self) == (0..<3).flatMap { round in (0..<10).map { "\(round).\($0)" } })
        #expect(agent.queued.publications == 0 && agent.queued.bytes == 0)
        subscription.cancel()
        await agent.stop()
    }

    @Test func unwrittenPublicationsCountTowardsTheQueue() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let limits = OutboxLimits(publications: 1000, bytes: 64 << 20)
        let agent = try agent(local(broker), limits: limits)
        agent.start()
        try waitUntil("online") { agent.isOnline }
        let pid = try #require(broker.pid)
        // While the broker does not read, the socket buffers fill; further publications are queued until one is
        // refused.
        kill(pid, SIGSTOP)
        let event = try channel(String(repeating: "x", count: 64 << 10))
        var accepted = 0
        let error = #expect(throws: CommunicationError.self) {
            while accepted < 5000 {
                _ = try agent.publishChannel(event)
                accepted += 1
            }
        }
        guard case .queueFull = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(accepted >= limits.publications)
        kill(pid, SIGCONT)
        try waitUntil("all is sent") { agent.queued.publications == 0 }
        await agent.stop()
    }

    @Test func publicationRefusedByBrokerIsDropped() async throws {
        let broker = try BrokerProcess(extraConfiguration: ["max_packet_size 100000"])
        defer { broker.stop() }
        let observer = try MQTTTestClient(port: broker.port)
        try observer.subscribe("coaty/3/-/CHN:c/+")
        var options = local(broker)
        options.maximumPublicationSize = 64 << 20
        let agent = try agent(options)
        agent.start()
        try waitUntil("online") { agent.isOnline }
        // Larger than the socket buffers, so that the connection is cut while the publication is being written.
        _ = try agent.publishChannel(channel(String(repeating: "x", count: 12 << 20)))
        _ = try agent.publishChannel(channel("behind"))
        _ = try observer.waitFor(within: 20) { $0.text.contains("behind") }
        try waitUntil("nothing is left") { agent.queued.publications == 0 }
        await agent.stop()
    }

    @Test(arguments: MQTTVersion.allCases)
    func largerPublicationThanTheBrokerAcceptsIsRefused(version: MQTTVersion) async throws {
        let broker = try BrokerProcess(extraConfiguration: ["max_packet_size 100000", "log_type all"])
        defer { broker.stop() }
        var options = local(broker)
        options.version = version
        options.maximumPublicationSize = 90_000
        let agent = try agent(options)
        agent.start()
        try waitUntil("online") { agent.isOnline }
        #expect(broker.log.contains(version == .v311 ? "(p2, c1, k10)" : "(p5, c1, k10)"))
        let limit = version == .v311 ? 90_000 : 100_000
        #expect(agent.statistics.properties.maximumPacketSize == limit)
        let event = try channel(String(repeating: "x", count: 110_000))
        let error = #expect(throws: CommunicationError.self) { try agent.publishChannel(event) }
        guard case .exceedsBrokerLimit(_, limit) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(agent.isOnline && agent.statistics.reconnects == 0)
        await agent.stop()
    }

    /// The second message is longer than the longest packet.
    @Test(arguments: [(16 << 20) + 1, 40 << 20])
    func oversizedMessagesAreReportedAsGap(size: Int) async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let other = try MQTTTestClient(port: broker.port)
        let agent = try agent(local(broker))
        let stands = Atomic(false)
        let seen = Atomic(0)
        let gaps = Atomic(0)
        let others = Atomic(0)
        let undisturbed = try agent.subscribe(rawTopic: "u", onGap: { _ in others.add(1, ordering: .relaxed) }) { _ in }
        let subscription = try agent.subscribe(
            rawTopic: "t",
            onStatus: { status in stands.store(status == .standing, ordering: .releasing) },
            onGap: { _ in gaps.store(seen.load(ordering: .relaxed) + 1, ordering: .relaxed) },
            handler: { _ in seen.add(1, ordering: .relaxed) }
        )
        agent.start()
        try waitUntil("it stands") { stands.load(ordering: .acquiring) }
        try other.publish("t", [UInt8](repeating: 0x61, count: size))
        try other.publish("t", "behind")
        try waitUntil("it comes") { seen.load(ordering: .relaxed) == 1 }
        #expect(agent.statistics.received == 2 && agent.statistics.invalid == 1)
        #expect(gaps.load(ordering: .relaxed) == 1, "the gap comes before the next event")
        #expect(others.load(ordering: .relaxed) == 0)
        undisturbed.cancel()
        subscription.cancel()
        await agent.stop()
    }

    /// The broker sends messages with QoS 1 and 2, although the agent has subscribed with QoS 0.
    @Test func brokerMayRaiseTheQualityOfService() async throws {
        let broker = try BrokerProcess(extraConfiguration: ["upgrade_outgoing_qos true"])
        defer { broker.stop() }
        let other = try MQTTTestClient(port: broker.port)
        try other.subscribe("u")
        let agent = try agent(local(broker))
        let stands = Atomic(false)
        let losses = Atomic(0)
        let seen = Atomic(0)
        let subscription = try agent.subscribe(
            rawTopic: "t",
            onStatus: { status in
                if status == .standing { stands.store(true, ordering: .releasing) }
                if status == .offline { losses.add(1, ordering: .relaxed) }
            },
            handler: { _ in
                seen.add(1, ordering: .relaxed)
                _ = try? agent.publishRaw(.with(topic: "u", payload: [1]))
            }
        )
        agent.start()
        try waitUntil("it stands") { stands.load(ordering: .acquiring) }
        let lossesBefore = losses.load(ordering: .relaxed)
        for number in 0..<200 { try other.publish("t", "message", qos: Int32(number % 3)) }
        try waitUntil("all come") { seen.load(ordering: .relaxed) == 200 }
        _ = try other.waitFor(count: 200)
        #expect(losses.load(ordering: .relaxed) == lossesBefore, "the connection stays")
        subscription.cancel()
        await agent.stop()
    }

    @Test func subscriptionsDoNotPileUpWhileTheSocketIsFull() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let agent = try agent(local(broker), limits: OutboxLimits(publications: 100, bytes: 64 << 20))
        agent.start()
        try waitUntil("online") { agent.isOnline }
        let pid = try #require(broker.pid)
        kill(pid, SIGSTOP)
        let event = try channel(String(repeating: "x", count: 256 << 10))
        while (try? agent.publishChannel(event)) != nil {}
        var refused = 0
        var requests: [PendingRequest] = []
        for _ in 0..<1000 {
            do {
                // The socket buffers may still take a few.
                requests.append(try agent.publish(DiscoverEvent.with(coreTypes: [.Identity])) { _ in })
            } catch {
                refused += 1
            }
            try agent.subscribe(.channel("passing")) { _ in }.cancel()
        }
        #expect(refused > 500)
        // Requests that have ended leave no operations in the queue.
        requests = []
        #expect(agent.queued.operations < 200)
        kill(pid, SIGCONT)
        try waitUntil("all is sent") { agent.queued.publications == 0 }
        await agent.stop()
    }

    @Test func stopsWhileTheBrokerIsAway() async throws {
        let agent = try agent(MQTTClientOptions(host: "127.0.0.1", port: FreePort.tcp()))
        agent.start()
        try agent.publishChannel(channel("discarded"))
        await agent.stop()
        #expect(agent.queued.publications == 0)
    }

    @Test func discoversWithoutWaitingForDelayedAcknowledgements() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let asking = try agent(local(broker))
        let asked = try agent(local(broker))
        let observer = try MQTTTestClient(port: broker.port)
        try observer.subscribe("coaty/3/-/ADV:Identity/+")
        for agent in [asking, asked] { agent.start() }
        // Identities are advertised after the subscriptions.
        _ = try observer.waitFor(count: 2)
        for _ in 0..<20 {
            var answer: ResolveEvent?
            for await event in try asking.publishDiscover(.with(objectId: asked.identityId)) {
                answer = event
                break
            }
            #expect(answer?.sourceId == asked.identityId)
        }
        for agent in [asking, asked] { await agent.stop() }
    }

    @Test func tlsRequiresValidCertificates() async throws {
        let certificates = try Certificates()
        try certificates.make("broker", "subjectAltName=IP:127.0.0.1")
        let broker = try BrokerProcess(certificates, "broker", extraConfiguration: ["require_certificate true"])
        defer { broker.stop() }
        func isAccepted(_ host: String, _ tls: MQTTClientOptions.TLSOptions?) async throws -> Bool {
            let agent = try agent(MQTTClientOptions(host: host, port: broker.port, tls: tls))
            agent.start()
            let deadline = Date(timeIntervalSinceNow: 2)
            while !agent.isOnline, Date() < deadline { try await Task.sleep(for: .milliseconds(5)) }
            defer { #expect(!agent.isOnline) }
            let isAccepted = agent.isOnline
            await agent.stop()
            return isAccepted
        }
        let client = (certificate: certificates.path("client.pem"), key: certificates.path("client.key"))
        func options(_ ca: String, withClient: Bool = true) -> MQTTClientOptions.TLSOptions {
            .init(
                caFile: certificates.path(ca),
                certificateFile: withClient ? client.certificate : nil,
                keyFile: withClient ? client.key : nil
            )
        }
        #expect(try await isAccepted("127.0.0.1", options("ca.pem")))
        #expect(try await !isAccepted("127.0.0.1", options("ca.pem", withClient: false)), "no client certificate")
        #expect(try await !isAccepted("127.0.0.1", options("other-ca.pem")), "an authority that is not trusted")
        #expect(try await !isAccepted("localhost", options("ca.pem")), "a certificate for another name")
        #expect(try await !isAccepted("127.0.0.1", nil), "no TLS")
    }
}
