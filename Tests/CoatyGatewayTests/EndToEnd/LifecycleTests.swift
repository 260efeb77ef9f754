import Foundation
import TestSupport
import Testing

@Suite(.exclusive) struct LifecycleTests {
    @Test(arguments: [SIGTERM, SIGINT])
    func stopCompletesRequestsThenClosesStreams(_ signal: Int32) throws {
        let scene = try Scene()
        let stream = try scene.gateway.stream("deadvertise")
        let asking = try RawConnection(port: scene.gateway.port)
        let body = #"{"objectTypes":["com.example.None"]}"#
        let head = "POST /v1/discover?timeout=1000 HTTP/1.1\r\nHost: l\r\nContent-Type: application/json\r\n"
        try asking.send(head + "Content-Length: \(body.utf8.count)\r\n\r\n" + body)
        _ = try scene.agent.waitFor { $0.asks(body) }
        let joined = try scene.agent.waitFor { $0.topic.contains("/ADV:Identity/") }

        scene.gateway.signal(signal)
        // Pending requests end normally, streams close with 4000, and the gateway leaves the network last.
        #expect(try asking.readResponse().json?["reason"] as? String == "timeout")
        guard case .close(4000, _) = try stream.receive() else {
            Issue.record("expected a close with 4000")
            return
        }
        // The gateway waits for the answer to its close frame, so it can't have left yet.
        #expect(!scene.agent.messages.contains { $0.topic.contains("/DAD/") })
        let left = try scene.agent.waitFor { $0.topic.contains("/DAD/") }
        let identityId = try #require(joined.topic.split(separator: "/").last)
        #expect(left.text == #"{"objectIds":["\#(identityId)"]}"#)
        #expect(try scene.gateway.waitForEnd() == 0)
    }

    @Test func servesRequestsDuringTheDrainDelay() throws {
        let scene = try Scene(["--limit", "drain-delay=2"])
        let stream = try scene.gateway.stream("advertise?objectType=com.example.Thing")
        scene.gateway.signal(SIGTERM)
        try waitUntil("it is not ready") { try scene.gateway.request("GET", "/readyz").status == 503 }
        let ready = try scene.gateway.request("GET", "/readyz")
        #expect(ready.problem == "shutting-down" && ready.headers["retry-after"] == "1")
        #expect(try scene.gateway.request("GET", "/healthz").status == 200)
        let id = UUID().uuidString
        let object = #"{"coreType":"CoatyObject","objectType":"com.example.Thing","objectId":"\#(id)","name":"n"}"#
        // A load balancer must not reuse the connection.
        let connection = try RawConnection(port: scene.gateway.port)
        let body = #"{"object":\#(object)}"#
        let head = "POST /v1/advertise HTTP/1.1\r\nHost: l\r\nContent-Type: application/json\r\n"
        try connection.send(head + "Content-Length: \(body.utf8.count)\r\n\r\n" + body)
        let published = try connection.readResponse()
        #expect(published.status == 202 && published.headers["connection"]?.lowercased() == "close")
        #expect(try connection.isClosedByPeer())
        guard case .text = try stream.receive() else {
            Issue.record("expected an event")
            return
        }
        #expect(try scene.gateway.waitForEnd() == 0)
    }

    @Test func stopEndsLongRequestsWith503() throws {
        let scene = try Scene()
        let asking = try (0..<20).map { _ in try RawConnection(port: scene.gateway.port) }
        let body = #"{"objectTypes":["com.example.None"]}"#
        let head = "POST /v1/discover?timeout=60000 HTTP/1.1\r\nHost: l\r\nContent-Type: application/json\r\n"
        for connection in asking { try connection.send(head + "Content-Length: \(body.utf8.count)\r\n\r\n" + body) }
        try waitUntil("all are asked") { scene.agent.messages.filter { $0.asks(body) }.count == 20 }
        scene.gateway.signal(SIGTERM)
        for connection in asking {
            let response = try connection.readResponse()
            #expect(response.status == 503 && response.problem == "shutting-down")
        }
        #expect(try scene.gateway.waitForEnd() == 0)
    }

    @Test func killedGatewayIsDeadvertisedAndLeavesNoBroker() throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let agent = try MQTTTestClient(port: broker.port)
        try agent.subscribe("coaty/#")
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)"])
        let joined = try agent.waitFor { $0.topic.contains("/ADV:Identity/") }
        #expect(try gateway.stop(SIGKILL) == -SIGKILL)
        let identityId = try #require(joined.topic.split(separator: "/").last)
        #expect(try agent.waitFor { $0.topic.contains("/DAD/") }.text == #"{"objectIds":["\#(identityId)"]}"#)

        let own = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0"])
        #expect(children(of: own.pid).count == 1)
        let child = try #require(children(of: own.pid).first)
        #expect(try own.stop(SIGKILL) == -SIGKILL)
        try waitUntil("its broker is gone") { kill(child, 0) != 0 }
    }

    @Test func restartsItsOwnBroker() throws {
        let gateway = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0"])
        let stream = try gateway.stream("channel?channelId=c")
        let child = try #require(children(of: gateway.pid).first)
        kill(child, SIGKILL)
        try waitUntil("another broker runs") { children(of: gateway.pid).first.map { $0 != child } ?? false }
        try gateway.untilReady()
        let agent = try MQTTTestClient(port: gateway.brokerPort)
        #expect(try stream.receiveWithoutCursor() == #"{"op":"gap","dropped":null}"#)
        // The gateway first restores its own subscriptions, so an `ok` for a new one shows that they are active again.
        _ = try gateway.stream("channel?channelId=other")
        try agent.publish("coaty/3/-/CHN:c/a", #"{"objects":[]}"#)
        guard case .text(let text) = try stream.receive(), text.contains(#""event":"channel""#) else {
            Issue.record("expected an event")
            return
        }
        let broker = try #require(children(of: gateway.pid).first)
        #expect(try gateway.stop() == 0)
        #expect(kill(broker, 0) != 0)
    }

    @Test func stopsWhenItsOwnBrokerCannotBeRestarted() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "path-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let script = folder.appending(path: "mosquitto")
        try "#!/bin/sh\nexec /usr/sbin/mosquitto \"$@\"\n".write(to: script, atomically: false, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: script.path)
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        let gateway = try GatewayProcess(
            ["--embedded-broker-listen", "127.0.0.1:0"],
            environment: ["PATH": "\(folder.path):\(path)"]
        )
        let stream = try gateway.stream("advertise?objectType=t")
        try FileManager.default.removeItem(at: script)
        kill(try #require(children(of: gateway.pid).first), SIGKILL)
        // This takes 12.7 s. The exit code shows supervisors that the gateway did not stop on request.
        #expect(try gateway.waitForEnd() == 1)
        try gateway.untilLogged(/error.*embedded broker is given up/, "that the broker is given up")
        #expect(
            gateway.log.contains(
                /critical gateway: a component has failed: the gateway stops component="embedded broker"/
            )
        )
        guard case .text = try stream.receive(), case .close(4000, _) = try stream.receive() else {
            Issue.record("expected a gap and a close with 4000")
            return
        }
    }

    @Test func takesTheNextFreePortForItsOwnBroker() throws {
        let gateways = try (0..<2).map { _ in try GatewayProcess() }
        #expect(gateways.allSatisfy { $0.brokerPort >= 1883 } && gateways[0].brokerPort != gateways[1].brokerPort)
        for gateway in gateways {
            try gateway.untilReady()
        }
    }

    /// Agents are configured with this port and could not find the broker on another one.
    @Test func startFailsIfTheChosenBrokerPortIsTaken() throws {
        let first = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0"])
        let address = "127.0.0.1:\(first.brokerPort)"
        let second = try GatewayProcess(unready: ["--port", "0", "--embedded-broker-listen", address])
        #expect(try second.waitForEnd() == 1)
        #expect(second.log.contains("embedded-broker-listen: \(address) is in use by another program"))
        #expect(second.output.isEmpty)
    }

    private func children(of pid: pid_t) -> [pid_t] {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task")) ?? []
        return threads.flatMap { thread in
            let list = (try? String(contentsOfFile: "/proc/\(pid)/task/\(thread)/children", encoding: .utf8)) ?? ""
            return list.split(separator: " ").compactMap { pid_t($0) }
        }
    }
}
