import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyMQTT

/// The check that the broker answers.
@Suite(.exclusive) struct BrokerCheckTests {
    // MARK: - The steps

    /// Times in seconds.
    private struct Silence {
        let start = ContinuousClock.now
        var check = BrokerCheck(interval: .seconds(3))
        private var lastArrival = 0.0
        private var arrivals = 0

        func progress(_ time: Double, _ acknowledged: Int) -> TCPProgress {
            TCPProgress(idle: .seconds(time) - .seconds(lastArrival), arrived: arrivals, acknowledged: acknowledged)
        }

        mutating func step(_ time: Double, acknowledged: Int = 100) -> BrokerCheck.Step {
            check.step(progress(time, acknowledged), now: start + .seconds(time))
        }

        mutating func asked(_ time: Double, through end: Int, acknowledged: Int = 100) {
            check.asked(through: end, progress(time, acknowledged), now: start + .seconds(time))
        }

        mutating func blocked(_ time: Double, acknowledged: Int = 100) {
            check.blocked(progress(time, acknowledged), now: start + .seconds(time))
        }

        mutating func receive(_ time: Double) {
            lastArrival = time
            arrivals += 1
        }
    }

    @Test func silentBrokerIsAskedOnceAndThenLost() {
        var silence = Silence()
        #expect(silence.step(1) == .nothing && silence.step(2.9) == .nothing)
        #expect(silence.step(3) == .ask)
        silence.asked(3, through: 120)
        #expect(silence.step(4) == .nothing && silence.step(5.9) == .nothing)
        #expect(silence.step(6) == .lost)
    }

    @Test func answeredCheckIsRepeatedAfterTheInterval() {
        var silence = Silence()
        #expect(silence.step(3) == .ask)
        silence.asked(3, through: 120)
        silence.receive(3)
        #expect(silence.step(4) == .nothing && silence.step(5.5) == .nothing)
        #expect(silence.step(7) == .ask)
        silence.asked(7, through: 140)
        #expect(silence.step(9.5) == .nothing)
        #expect(silence.step(10) == .lost)
    }

    /// The packet is still on its way on a slow network, so the broker can't have answered it.
    @Test func waitBeginsWhenThePacketHasArrived() {
        var silence = Silence()
        #expect(silence.step(3) == .ask)
        silence.asked(3, through: 1_000)
        #expect(silence.step(5, acknowledged: 400) == .nothing)
        #expect(silence.step(7, acknowledged: 1_200) == .nothing)
        // What is sent after the packet does not count.
        #expect(silence.step(9, acknowledged: 2_000) == .nothing)
        #expect(silence.step(10, acknowledged: 3_000) == .lost)
    }

    @Test func blockedSocketIsLostUnlessBytesLeave() {
        var silence = Silence()
        #expect(silence.step(3) == .ask)
        silence.blocked(3)
        #expect(silence.step(4) == .ask)
        silence.blocked(4)
        #expect(silence.step(6) == .lost)

        silence = Silence()
        #expect(silence.step(3) == .ask)
        silence.blocked(3)
        #expect(silence.step(5, acknowledged: 200) == .ask)
        silence.blocked(5, acknowledged: 200)
        #expect(silence.step(7, acknowledged: 200) == .ask)
        silence.asked(7, through: 300, acknowledged: 200)
        #expect(silence.step(9.9, acknowledged: 200) == .nothing)
        #expect(silence.step(10, acknowledged: 200) == .lost)
    }

    @Test func zeroNeverChecks() {
        var check = BrokerCheck(interval: .zero)
        #expect(check.step(TCPProgress(idle: .seconds(1_000)), now: .now) == .nothing)
    }

    @Test func filterIsNeverSubscribed() {
        #expect(!MQTTTopic.isObservable(BrokerCheck.filter) && !MQTTTopic.isIoRoute(BrokerCheck.filter))
        #expect(MQTTTopic.address(of: BrokerCheck.filter, namespace: "-", dialect: .plain) == nil)
    }

    // MARK: - Brokers

    /// The interval of the checks, in seconds. The keepalive alone would take more than a minute.
    private static let interval = 1
    /// The interval, the time for the answer, and two seconds because the checks run once a second.
    private static let limit = Double(2 * interval + 2)

    private func agent(port: UInt16, keepAlive: UInt16 = 60) throws -> CommunicationManager {
        var options = MQTTClientOptions(host: "127.0.0.1", port: port, keepAlive: keepAlive)
        options.checkInterval = .seconds(Self.interval)
        return try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions(mqttClientOptions: options)
        )
    }

    /// - Parameter size: the bytes of the publications that fill the connection meanwhile; 0 for none.
    @Test(arguments: [0, 64 << 10]) func frozenBrokerIsNoticedAndUsedAgain(size: Int) async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let agent = try agent(port: broker.port)
        agent.start()
        try waitUntil("online") { agent.isOnline }
        let pid = try #require(broker.pid)
        kill(pid, SIGSTOP)
        defer { kill(pid, SIGCONT) }
        let start = ContinuousClock.now
        if size > 0 {
            let payload = [UInt8](repeating: 0, count: size)
            let publication = Publication(.raw(topic: "t", isRetained: false), payload: payload)
            while (try? agent.session.publish([publication])) != nil {}
        }
        try waitUntil("offline") { !agent.isOnline }
        let time = ContinuousClock.now - start
        #expect(time > .seconds(Self.interval) && time < .seconds(Self.limit))
        try waitUntil("the reason is known") { agent.connectionError?.reason == .noAnswer }
        kill(pid, SIGCONT)
        try waitUntil("online again") { agent.isOnline }
        await agent.stop()
    }

    @Test func idleConnectionStays() async throws {
        // A broker that refuses it answers, too.
        let security = """
            {"defaultACLAccess":{"publishClientSend":true,"publishClientReceive":true,"subscribe":true,"unsubscribe":false}}
            """
        let broker = try BrokerProcess(securedBy: security, extraConfiguration: ["log_type all"])
        defer { broker.stop() }
        let agent = try agent(port: broker.port, keepAlive: 5)
        let subscription = try agent.subscribe(rawTopic: "#", handler: { _ in })
        agent.start()
        try waitUntil("online") { agent.isOnline }
        func checks() -> Int { broker.log.components(separatedBy: "\t\(BrokerCheck.filter)").count - 1 }
        let before = checks()
        let start = ContinuousClock.now
        try waitUntil("it is checked") { checks() >= before + 6 }
        // Six checks span five intervals; the first may be in the log only after it was sent.
        #expect(.now - start > .seconds(4 * Self.interval))
        #expect(agent.isOnline && agent.statistics.reconnects == 0)
        #expect(!broker.log.contains("PINGREQ"), "the checks replace pings")
        subscription.cancel()
        await agent.stop()
    }

    @Test func busyConnectionIsNotChecked() async throws {
        let broker = try BrokerProcess(extraConfiguration: ["log_type all"])
        defer { broker.stop() }
        let agent = try agent(port: broker.port)
        let received = Atomic(0)
        let subscription = try agent.subscribe(rawTopic: "t") { _ in received.add(1, ordering: .relaxed) }
        agent.start()
        try waitUntil("online") { agent.isOnline }
        let client = try MQTTTestClient(port: broker.port)
        for _ in 0..<40 {
            try client.publish("t", "")
            try await Task.sleep(for: .milliseconds(100))
        }
        try waitUntil("all is received") { received.load(ordering: .relaxed) == 40 }
        #expect(!broker.log.contains(BrokerCheck.filter))
        subscription.cancel()
        await agent.stop()
    }

    @Test(arguments: [true, false]) func brokerThatOnlyAcceptsIsLost(answersUnsubscribe: Bool) async throws {
        let broker = try FakeBroker(answersUnsubscribe: answersUnsubscribe)
        defer { broker.stop() }
        let agent = try agent(port: broker.port)
        agent.start()
        try waitUntil("online") { agent.isOnline }
        let start = ContinuousClock.now
        if answersUnsubscribe {
            try waitUntil("it is checked") { broker.unsubscribes >= 4 }
            #expect(agent.statistics.reconnects == 0)
        } else {
            try waitUntil("offline") { !agent.isOnline }
            #expect(.now - start < .seconds(Self.limit))
            // The first confirms the Advertise event of the agent.
            #expect(broker.unsubscribes == 2)
        }
        await agent.stop()
    }
}

/// A broker that accepts connections and subscriptions, and delivers nothing.
private final class FakeBroker: Sendable {
    let port: UInt16
    private let listener: Int32
    private let answersUnsubscribe: Bool
    private let count = Atomic(0)

    /// The number of UNSUBSCRIBE packets that it has received.
    var unsubscribes: Int { count.load(ordering: .relaxed) }

    init(answersUnsubscribe: Bool) throws {
        self.answersUnsubscribe = answersUnsubscribe
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                bind(listener, name, size) == 0 && listen(listener, 8) == 0 && getsockname(listener, name, &size) == 0
            }
        }
        guard isListening else { throw MosquittoError(connection: errno) }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [self] in
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                Thread.detachNewThread { [self] in
                    serve(connection)
                    close(connection)
                }
            }
        }
    }

    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    private func serve(_ connection: Int32) {
        while let packet = Self.packet(connection) {
            switch packet.type {
            case 1: Self.send([0x20, 2, 0, 0], connection)
            case 8:
                // The filters follow the identifier, each with its length and its QoS.
                var (filters, offset) = (0, 2)
                while offset + 1 < packet.body.count {
                    offset += 3 + Int(packet.body[offset]) << 8 + Int(packet.body[offset + 1])
                    filters += 1
                }
                let granted = [UInt8](repeating: 0, count: filters)
                Self.send([0x90, UInt8(2 + filters)] + packet.body[..<2] + granted, connection)
            case 10:
                count.add(1, ordering: .relaxed)
                if answersUnsubscribe { Self.send([0xB0, 2] + packet.body[..<2], connection) }
            default: break
            }
        }
    }

    private static func send(_ bytes: [UInt8], _ connection: Int32) {
        _ = Foundation.send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    private static func packet(_ connection: Int32) -> (type: UInt8, body: [UInt8])? {
        guard let first = bytes(1, connection)?.first else { return nil }
        var (length, shift) = (0, 0)
        while let byte = bytes(1, connection)?.first {
            length |= Int(byte & 0x7F) << shift
            shift += 7
            if byte & 0x80 == 0 { break }
        }
        return bytes(length, connection).map { (first >> 4, $0) }
    }

    private static func bytes(_ count: Int, _ connection: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        guard count == 0 || recv(connection, &bytes, count, Int32(MSG_WAITALL)) == count else { return nil }
        return bytes
    }
}
