import Foundation
import Synchronization
import TestSupport
import Testing

/// Loss and return of the broker.
@Suite(.exclusive) struct BrokerLossTests {
    @Test func recoversFromBrokerCrashUnderLoad() throws {
        let scene = try Scene()
        let gateway = scene.gateway
        let stream = try gateway.stream("channel?channelId=in")

        let load = Load(port: gateway.port)
        try waitUntil("the load runs") { load.outcomes.count > 200 }
        scene.broker.kill()
        try waitUntil("readyz says so") { try gateway.request("GET", "/readyz").status == 503 }
        let asked = try gateway.post("/v1/discover", #"{"coreTypes":["Identity"]}"#)
        #expect(asked.status == 503 && asked.problem == "broker-unavailable" && asked.headers["retry-after"] != nil)
        try waitUntil("publications are deferred") { load.outcomes.count { $0 == .deferred } > 200 }

        let observer = try Self.restart(scene.broker, before: gateway, observing: "coaty/3/-/CHN:load/+")
        try gateway.untilReady()
        let soFar = load.outcomes.count
        try waitUntil("the load goes on") { load.outcomes.count > soFar + 200 }
        load.stop()
        let outcomes = load.outcomes
        #expect(outcomes.last == .sent)
        #expect(try gateway.post("/v1/channel/load", Load.body("last")).text == #"{"deferred":false}"#)
        let last = try observer.waitFor(within: 30) { $0.text == Load.body("last") }
        let seen = observer.messages.prefix { $0 != last }.map(\.text)
        #expect(Set(seen).count == seen.count, "none arrives twice")
        let numbers = seen.compactMap { text in outcomes.indices.first { Load.body("\($0)") == text } }
        #expect(numbers == numbers.sorted(), "all arrive in order")
        let first = try #require(outcomes.firstIndex(of: .deferred))
        #expect(Set(numbers).isSuperset(of: first..<outcomes.count), "all deferred events arrive, and all later ones")
        #expect(!outcomes.contains(.refused))

        // The gateway subscribes before it sends the deferred events.
        #expect(try stream.receiveWithoutCursor() == #"{"op":"gap","dropped":null}"#)
        try observer.publish("coaty/3/-/CHN:in/a", #"{"objects":[]}"#)
        guard case .text(let text) = try stream.receive(), text.contains(#""event":"channel""#) else {
            Issue.record("expected an event")
            return
        }
    }

    /// Restarts the broker while the gateway is stopped, so that an observer can subscribe before the gateway
    /// reconnects.
    private static func restart(
        _ broker: BrokerProcess,
        before gateway: GatewayProcess,
        observing filter: String
    ) throws -> MQTTTestClient {
        gateway.signal(SIGSTOP)
        defer { gateway.signal(SIGCONT) }
        try broker.restart()
        let observer = try MQTTTestClient(port: broker.port)
        try observer.subscribe(filter)
        return observer
    }

    @Test func deferredPublicationsAreSentInOrderAfterTheIdentity() throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)"])
        broker.kill()
        try waitUntil("readyz says so") { try gateway.request("GET", "/readyz").status == 503 }
        for number in 0..<500 {
            #expect(try gateway.post("/v1/channel/c", Load.body("\(number)")).text == #"{"deferred":true}"#)
        }
        let observer = try Self.restart(broker, before: gateway, observing: "coaty/#")
        let messages = try observer.waitFor(count: 501, within: 30)
        #expect(messages[0].topic.contains("/ADV:Identity/"))
        #expect(messages.dropFirst().map(\.text) == (0..<500).map { Load.body("\($0)") })
    }

    @Test func agentsThatLeaveWithoutTheBrokerAreDeadvertisedOnceWhenItReturns() throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)"])
        /// Registers a node, and returns its id and that of its identity.
        func register(_ lease: Int, _ objectId: String = UUID().uuidString.lowercased()) throws -> [String] {
            let source = #"{"objectId":"\#(UUID().uuidString.lowercased())","name":"s","valueType":"v"}"#
            let body =
                #"{"contextName":"c","objectId":"\#(objectId)","leaseDuration":\#(lease),"ioSources":[\#(source)]}"#
            let reply = try gateway.post("/v1/io/nodes", body)
            let json = try JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: Any]
            let identity = try #require((json?["identity"] as? [String: Any])?["objectId"] as? String, "\(reply.text)")
            return [identity, objectId]
        }
        let withdrawn = try register(60_000)
        let replaced = try register(60_000)
        let expired = try register(3_000)
        let staying = try register(60_000)
        var client: FrameClient? = try gateway.frameClient()
        let identified = try #require(client).ask("identify", #""name":"Kiosk""#)
        let kiosk = try #require((identified.json["identity"] as? [String: Any])?["objectId"] as? String)

        broker.kill()
        try waitUntil("readyz says so") { try gateway.request("GET", "/readyz").status == 503 }
        #expect(try gateway.request("DELETE", "/v1/io/nodes/\(withdrawn[1])").status == 204)
        #expect(try gateway.request("DELETE", "/v1/io/nodes/\(replaced[1])").status == 204)
        client = nil
        try waitUntil("the lease is over") {
            try gateway.request("GET", "/v1/io/nodes/\(expired[1])").status == 404
        }
        // A registration that fails meanwhile must not make the gateway forget the node before it.
        let points = #""ioSources":[{"name":"s","valueType":"v"}]"#
        let failed = try gateway.post(
            "/v1/io/nodes",
            #"{"contextName":"c","objectId":"\#(withdrawn[1])","leaseDuration":60000,\#(points)}"#
        )
        #expect(failed.status == 503)

        let observer = try Self.restart(broker, before: gateway, observing: "coaty/#")
        let ended = Set([withdrawn[0], withdrawn[1], replaced[0], replaced[1], expired[0], expired[1], kiosk])
        func deadvertised() -> [String] {
            observer.messages.filter { $0.topic.contains("/DAD/") }.flatMap { message in
                let json = try? JSONSerialization.jsonObject(with: Data(message.text.utf8)) as? [String: [String]]
                return json?["objectIds"] ?? []
            }
        }
        try waitUntil("all are deadvertised") { ended.isSubset(of: deadvertised()) }
        _ = try observer.waitFor { $0.topic.contains("/ADV:IoNode/") && $0.text.contains(staying[1]) }
        #expect(deadvertised().count == ended.count, "each once, and no other")
        // A new node with the same id stays.
        _ = try register(60_000, replaced[1])
        #expect(try gateway.post("/v1/channel/last", #"{"objects":[]}"#).status == 202)
        _ = try observer.waitFor { $0.topic.contains("/CHN:last/") }
        #expect(deadvertised().count == ended.count)
    }

    @Test func refusesPublicationsWhenTheQueueIsFull() throws {
        let port = try FreePort.tcp()
        let gateway = try GatewayProcess([
            "--broker", "mqtt://127.0.0.1:\(port)", "--limit", "maximum-outbox-publications=10",
        ])
        for number in 0..<5 {
            #expect(try gateway.post("/v1/channel/c", Load.body("\(number)")).text == #"{"deferred":true}"#)
        }
        let refused = try gateway.post("/v1/channel/c", Load.body("6"))
        #expect(refused.status == 429 && refused.problem == "queue-full" && refused.headers["retry-after"] != nil)
        #expect(try gateway.request("GET", "/healthz").status == 200)
        #expect(try gateway.request("GET", "/readyz").status == 503)
    }

    @Test func authenticatesAtTheBroker() throws {
        let broker = try BrokerProcess(
            files: ["passwords": "user:\(Self.passwordHash)\n"],
            extraConfiguration: ["allow_anonymous false", "password_file %d/passwords"]
        )
        defer { broker.stop() }
        let gateway = try GatewayProcess(
            [],
            environment: ["COATY_GATEWAY_BROKER": "mqtt://user:s%40cret@127.0.0.1:\(broker.port)"]
        )
        try gateway.untilReady()
        let info = try gateway.request("GET", "/v1/info").text
        #expect(!info.contains("cret") && !gateway.log.contains("cret") && !gateway.output.contains("cret"))

        let denied = try GatewayProcess(["--broker", "mqtt://user:wrong@127.0.0.1:\(broker.port)"])
        #expect(try denied.request("GET", "/readyz").status == 503)
        try waitUntil("the log says why") { denied.log.contains("reason=not-authorized") }
        let notReady = try denied.request("GET", "/readyz").text
        #expect(notReady.contains(#""reason":"not-authorized""#) && notReady.contains("user name and password"))
        let status = try denied.request("GET", "/v1/status").text
        #expect(status.contains(#""error":{"reason":"not-authorized","message":"#))
        #expect(!denied.log.contains("wrong"))
    }

    @Test func changedPasswordFileIsUsedWithoutRestart() throws {
        let broker = try BrokerProcess(
            files: ["passwords": "user:\(Self.passwordHash)\n"],
            extraConfiguration: ["allow_anonymous false", "password_file %d/passwords"]
        )
        defer { broker.stop() }
        let file = broker.directory + "/password"
        func write(_ text: String) throws { try text.write(toFile: file, atomically: true, encoding: .utf8) }
        try write("wrong\n")
        let gateway = try GatewayProcess([
            "--broker", "mqtt://127.0.0.1:\(broker.port)", "--broker-user", "user", "--broker-password-file", file,
        ])
        func isReported(_ reason: String) throws -> Bool {
            try gateway.request("GET", "/readyz").text.contains(#""reason":"\#(reason)""#)
        }
        try waitUntil("the password is wrong") { try isReported("not-authorized") }
        for text in ["", "\n", "a\u{0}b"] {
            try write(text)
            try waitUntil("the file has no password: \(text.debugDescription)") { try isReported("password-file") }
            try write("wrong")
            try waitUntil("the password is wrong again") { try isReported("not-authorized") }
        }
        try FileManager.default.removeItem(atPath: file)
        try waitUntil("the file is missing") { try isReported("password-file") }
        try write("s@cret\r\nanother line\n")
        try gateway.untilReady()
        #expect(!gateway.log.contains("cret") && !gateway.log.contains("wrong\n"))
    }

    @Test func changedBrokerCertificatesAreUsedWithoutRestart() throws {
        let certificates = try Certificates()
        let broker = try BrokerProcess(certificates, extraConfiguration: ["require_certificate true"])
        defer { broker.stop() }
        let authority = certificates.path("authority-in-use.pem")
        func use(_ file: String, as path: String) throws {
            try String(contentsOfFile: certificates.path(file), encoding: .utf8)
                .write(toFile: path, atomically: true, encoding: .utf8)
        }
        try use("other-ca.pem", as: authority)
        let own = certificates.path("own")
        for kind in ["pem", "key"] { try use("client.\(kind)", as: "\(own).\(kind)") }
        let gateway = try GatewayProcess([
            "--broker", "mqtts://127.0.0.1:\(broker.port)", "--broker-ca-file", authority,
            "--broker-certificate-file", own + ".pem", "--broker-key-file", own + ".key",
        ])
        func isReady() throws -> Bool { try gateway.request("GET", "/readyz").status == 200 }
        try waitUntil("the broker's certificate is refused") { gateway.log.contains("not connected to the broker") }
        #expect(try !isReady())
        try use("ca.pem", as: authority)
        try waitUntil("ready with the right authority") { try isReady() }
        // The current connection keeps its certificate; the next one uses the new certificate.
        try certificates.make("second", "subjectAltName=DNS:second.example")
        for kind in ["pem", "key"] { try use("second.\(kind)", as: "\(own).\(kind)") }
        #expect(try isReady())
        try broker.restart()
        try waitUntil("it is online again") {
            try gateway.metric("coaty_gateway_broker_reconnects_total") == 1 && isReady()
        }
    }

    /// The mosquitto_passwd hash of `s@cret`.
    static let passwordHash =
        "$7$101$Hj8pLBndYXBICsJp$S1TLRZeOLPCuShvd+z/0X6Hw9bzjQFfiNzTmF26KYEFU2dD+MaM2yMFxQk28TvX7pZO5PA5tBCRgNOVUIS53Ow=="
}

/// Publishes numbered objects on the channel `load`, one after the other, and records the outcome of each.
private final class Load: Sendable {
    enum Outcome { case sent, deferred, refused }

    private let state = Mutex<(outcomes: [Outcome], isStopped: Bool)>(([], false))
    private let ended = DispatchSemaphore(value: 0)

    static func body(_ name: String) -> String {
        #"{"object":{"coreType":"CoatyObject","objectType":"t","objectId":"5b1c1b1e-4c4b-4d0e-9d5a-0d4f1b1c1b1e","name":"\#(name)"}}"#
    }

    init(port: UInt16) {
        Thread.detachNewThread { [self] in
            defer { ended.signal() }
            guard let connection = try? RawConnection(port: port) else { return }
            while !state.withLock(\.isStopped) {
                let number = state.withLock(\.outcomes.count)
                let headers = [("Content-Type", "application/json")]
                let body = Self.body("\(number)")
                let response = try? connection.request("POST", "/v1/channel/load", headers: headers, body: body)
                let outcome: Outcome =
                    switch response?.text {
                    case #"{"deferred":false}"#: .sent
                    case #"{"deferred":true}"#: .deferred
                    default: .refused
                    }
                state.withLock { $0.outcomes.append(outcome) }
            }
        }
    }

    var outcomes: [Outcome] { state.withLock(\.outcomes) }

    func stop() {
        state.withLock { $0.isStopped = true }
        ended.wait()
    }
}
