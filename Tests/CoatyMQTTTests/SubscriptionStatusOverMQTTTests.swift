import Coaty
import CoatyMQTT
import Synchronization
import TestSupport
import Testing

/// The status of subscriptions on mosquitto.
@Suite(.exclusive) struct SubscriptionStatusOverMQTTTests {
    private func agent(_ options: MQTTClientOptions) throws -> CommunicationManager {
        try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions(mqttClientOptions: options)
        )
    }

    private func local(_ broker: BrokerProcess) -> MQTTClientOptions {
        MQTTClientOptions(host: "127.0.0.1", port: broker.port)
    }

    @Test func reportsAcknowledgedSubscriptions() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let agent = try agent(local(broker))
        let seen = Mutex<[SubscriptionStatus]>([])
        func observe(_ channel: String) throws -> Subscription {
            try agent.subscribe(.channel(channel), onStatus: { status in seen.withLock { $0.append(status) } }) { _ in }
        }
        let first = try observe("c")
        agent.start()
        try waitUntil("standing") { seen.withLock(\.self) == [.offline, .standing] }
        let second = try observe("d")
        try waitUntil("standing too") { seen.withLock(\.count) == 3 }
        let hasEnded = Atomic(false)
        let request = try agent.publish(
            DiscoverEvent.with(coreTypes: [.Task]),
            onEnd: { hasEnded.store(true, ordering: .releasing) },
            handler: { _ in }
        )
        broker.kill()
        try waitUntil("offline") { seen.withLock(\.count) == 5 }
        try waitUntil("no more answers") { hasEnded.load(ordering: .acquiring) }
        request.cancel()
        try broker.restart()
        try waitUntil("standing again") { seen.withLock(\.count) == 7 }
        #expect(seen.withLock(\.self).dropFirst(2) == [.standing, .offline, .offline, .standing, .standing])
        withExtendedLifetime((first, second)) {}
        await agent.stop()
    }

    @Test func noEventIsMissedOnceSubscribed() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let other = try MQTTTestClient(port: broker.port)
        let agent = try agent(local(broker))
        agent.start()
        try waitUntil("online") { agent.isOnline }
        for round in 0..<10 {
            let stands = Atomic(false)
            let seen = Atomic(false)
            let subscription = try agent.subscribe(
                rawTopic: "round/\(round)",
                onStatus: { if $0 == .standing { stands.store(true, ordering: .releasing) } },
                handler: { _ in seen.store(true, ordering: .releasing) }
            )
            try waitUntil("standing") { stands.load(ordering: .acquiring) }
            try other.publish("round/\(round)", "")
            try waitUntil("it comes") { seen.load(ordering: .acquiring) }
            subscription.cancel()
        }
        await agent.stop()
    }

    @Test func reportsRefusedSubscriptions() async throws {
        let broker = try BrokerProcess(refusing: "secret/#")
        defer { broker.stop() }
        let agent = try agent(local(broker))
        let seen = Mutex<[String]>([])
        func observe(_ topic: String) throws -> Subscription {
            try agent.subscribe(
                rawTopic: topic,
                onStatus: { status in seen.withLock { $0.append("\(topic) \(status)") } }
            ) {
                _ in
            }
        }
        let early = try [observe("secret/#"), observe("open/#")]
        #expect(seen.withLock(\.self) == ["secret/# offline", "open/# offline"])
        agent.start()
        try waitUntil("the broker answers") { seen.withLock(\.count) == 4 }
        #expect(Set(seen.withLock(\.self).dropFirst(2)) == ["secret/# refused", "open/# standing"])
        for subscription in early { subscription.cancel() }
        let late = try [observe("open/#"), observe("secret/#")]
        try waitUntil("the broker answers each") { seen.withLock(\.count) == 6 }
        #expect(seen.withLock(\.self).dropFirst(4) == ["open/# standing", "secret/# refused"])
        withExtendedLifetime(late) {}
        await agent.stop()
    }
}
