import Foundation
import TestSupport
import Testing

/// The membership of a cluster.
@Suite(.exclusive, .frameChecks) struct ClusterTests {
    @Test func gatewaysSeeEachOtherAndNoticeDepartures() throws {
        let scene = try ClusterScene(3)
        let ids = try scene.gateways.map { try $0.identityId() }
        #expect(try scene.gateways[0].cluster() == [ids[1]: "live", ids[2]: "live"])
        scene.kill(scene.gateways[2])
        try waitUntil("the killed gateway has left") { try scene.gateways[0].cluster()[ids[2]] == "left" }
        #expect(try scene.gateways[0].metric(#"coaty_gateway_cluster_gateways{state="left"}"#) == 1)
        scene.gateways[1].signal(SIGTERM)
        try waitUntil("the stopped gateway has left") { try scene.gateways[0].cluster()[ids[1]] == "left" }
        try scene.start()
        #expect(scene.gateways.count == 3)
    }

    @Test func anotherAgentCannotRemoveAGateway() throws {
        let scene = try ClusterScene()
        let id = try scene.gateways[1].identityId()
        for _ in 0..<3 { try scene.agent.publish("coaty/3/-/DAD/\(id)", #"{"objectIds":["\#(id)"]}"#) }
        // Longer than the time in which a gateway must show that it lives.
        let end = Date(timeIntervalSinceNow: 1.5)
        while Date() < end { #expect(try scene.gateways[0].cluster()[id] == "live") }
    }

    @Test func gatewaysWithAnotherSecretAreNoPeers() throws {
        let scene = try ClusterScene(1)
        let other = try scene.start(secret: "another secret of at least 32 characters")
        try waitUntil("messages were received") {
            try scene.gateways[0].metric("coaty_gateway_cluster_unreadable_messages_total") ?? 0 > 2
        }
        #expect(try scene.gateways[0].cluster().isEmpty && other.cluster().isEmpty)
        let messages = scene.agent.messages.filter { $0.topic.contains("/CHN:io.coaty-gateway.peers/") }
        #expect(!messages.isEmpty && messages.allSatisfy { $0.text.contains(#""sealed":""#) })
    }

    @Test func repeatedMessagesOfABridgeAreReported() throws {
        let scene = try ClusterScene(1)
        let gateway = scene.gateways[0]
        // As a loop of bridges does.
        for _ in 0..<4 {
            let last = try scene.agent.waitFor { $0.topic.contains("/CHN:io.coaty-gateway.peers/") }
            try scene.agent.publish(last.topic, last.text)
        }
        try waitUntil("the loop is counted") { try gateway.metric("coaty_gateway_cluster_loops_total") ?? 0 >= 3 }
        try waitUntil("the log has a line") { gateway.log.contains("look for a loop of bridges") }
    }

    @Test func aShortSecretEndsTheStart() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "key-\(UUID().uuidString)").path
        try "short".write(toFile: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: file) }
        let gateway = try GatewayProcess(unready: ["--port", "0", "--cluster-key-file", file])
        try waitUntil("it has ended") { gateway.hasEnded }
        #expect(gateway.log.contains("its first line must have at least 32 bytes"))
    }
}
