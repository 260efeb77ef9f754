import Foundation
import TestSupport
import Testing

/// Objects of clients in a cluster: when their gateway leaves, and at the other gateways.
@Suite(.exclusive, .frameChecks) struct ClusterObjectsTests {
    private struct Thing {
        let id = UUID().uuidString.lowercased()
        var name = "first"

        var json: String {
            #"{"coreType":"CoatyObject","objectType":"com.example.Thing","objectId":"\#(id)","name":"\#(name)"}"#
        }

        func advertise(
            _ gateway: GatewayProcess,
            lifetime: Int? = nil,
            headers: [(String, String)] = []
        ) throws -> RawConnection.Response {
            let member = lifetime.map { #","lifetime":\#($0)"# } ?? ""
            return try gateway.request(
                "POST",
                "/v1/advertise",
                headers: headers + [("Content-Type", "application/json")],
                body: #"{"object":\#(json)\#(member)}"#
            )
        }

        func isAdvertised(by agent: String, in message: MQTTTestClient.Message) -> Bool {
            message.topic == "coaty/3/-/ADV:CoatyObject/\(agent)" && message.text == #"{"object":\#(json)}"#
        }

        func isDeadvertised(by agent: String, in message: MQTTTestClient.Message) -> Bool {
            message.topic == "coaty/3/-/DAD/\(agent)" && message.text.contains(id)
        }
    }

    private func others(_ scene: ClusterScene, than gateway: GatewayProcess) throws -> [String] {
        try scene.gateways.filter { $0 !== gateway }.map { try $0.identityId() }.sorted()
    }

    @Test(arguments: [SIGKILL, SIGTERM]) func gatewayWithTheLowestIdTakesOver(signal: Int32) throws {
        let scene = try ClusterScene(3)
        let gateway = scene.gateways[0]
        let (lasting, short, withdrawn) = (Thing(), Thing(), Thing())
        let bound = Thing()
        for thing in [lasting, withdrawn] { #expect(try thing.advertise(gateway).status == 202) }
        #expect(try short.advertise(gateway, lifetime: 20).status == 202)
        let client = try gateway.frameClient()
        let members = #""event":"advertise","lifetime":"connection","data":{"object":\#(bound.json)}"#
        #expect(try client.ask("publish", members).op == "ok")
        #expect(try gateway.post("/v1/deadvertise", #"{"objectIds":["\#(withdrawn.id)"]}"#).status == 202)
        let (id, others) = (try gateway.identityId(), try others(scene, than: gateway))
        // The records travel behind the objects.
        _ = try scene.agent.waitFor { withdrawn.isDeadvertised(by: id, in: $0) }
        try waitForRecords(scene)

        gateway.signal(signal)
        for thing in [lasting, short] {
            _ = try scene.agent.waitFor { thing.isAdvertised(by: others[0], in: $0) }
        }
        // For the rest of its lifetime only.
        _ = try scene.agent.waitFor(within: 30) { short.isDeadvertised(by: others[0], in: $0) }
        let messages = scene.agent.messages
        for thing in [lasting, short] { #expect(!messages.contains { thing.isAdvertised(by: others[1], in: $0) }) }
        for thing in [withdrawn, bound] {
            #expect(!messages.contains { message in others.contains { thing.isAdvertised(by: $0, in: message) } })
        }
        // The object is the next gateway's if that one leaves, too.
        scene.kill(gateway)
        let taker = try #require(try scene.gateways.first { try $0.identityId() == others[0] })
        try waitForRecords(scene)
        scene.kill(taker)
        _ = try scene.agent.waitFor { lasting.isAdvertised(by: others[1], in: $0) }
        withExtendedLifetime(client) {}
    }

    /// Waits for several signs of life of each gateway: with the first one, another gateway notices that it has missed a
    /// change, and then asks for it.
    private func waitForRecords(_ scene: ClusterScene) throws {
        let before = scene.agent.messages.count
        try waitUntil("messages of each gateway") {
            let topics = scene.agent.messages.dropFirst(before).map(\.topic)
            let counts = Dictionary(
                topics.filter { $0.contains("/CHN:io.coaty-gateway.peers/") }.map { ($0, 1) },
                uniquingKeysWith: +
            )
            return counts.values.count { $0 >= 8 } >= scene.gateways.count
        }
    }

    @Test func changesWhileTheGatewayWasCutOffWin() throws {
        let scene = try ClusterScene(2, ["--broker-keepalive", "5"])
        let (gateway, other) = (scene.gateways[0], scene.gateways[1])
        let (id, otherId) = (try gateway.identityId(), try other.identityId())
        var (same, changed, withdrawn) = (Thing(), Thing(), Thing())
        for thing in [same, changed, withdrawn] { #expect(try thing.advertise(gateway).status == 202) }
        try waitForRecords(scene)
        // The broker ends its connection after one and a half keepalives.
        gateway.signal(SIGSTOP)
        defer { gateway.signal(SIGCONT) }
        for thing in [same, changed, withdrawn] {
            _ = try scene.agent.waitFor(within: 60) { thing.isAdvertised(by: otherId, in: $0) }
        }
        changed.name = "second"
        #expect(try changed.advertise(other).status == 202)
        #expect(try other.post("/v1/deadvertise", #"{"objectIds":["\#(withdrawn.id)"]}"#).status == 202)
        _ = try scene.agent.waitFor { withdrawn.isDeadvertised(by: otherId, in: $0) }
        gateway.signal(SIGCONT)
        try waitUntil("it is back") { try other.cluster()[id] == "live" }
        func objects(_ gateway: GatewayProcess) throws -> [String: String] {
            let list = try gateway.request("GET", "/v1/objects?objectType=com.example.Thing").json?["objects"]
            let objects = (list as? [[String: Any]] ?? []).map { $0["object"] as? [String: Any] ?? $0 }
            return Dictionary(
                objects.map { ($0["objectId"] as? String ?? "", $0["name"] as? String ?? "") },
                uniquingKeysWith: { $1 }
            )
        }
        let expected = [same.id: "first", changed.id: "second"]
        for gateway in scene.gateways {
            try? waitUntil("the newer versions apply") { try objects(gateway) == expected }
            #expect(try objects(gateway) == expected)
        }
    }

    @Test func ownersCountAtAllGateways() throws {
        let grants = ["{publish: [advertise, deadvertise], types: [\"com.example.*\"]}", "{read: [status, info]}"]
        let file = AccessFile(tokens: [.init("ann", "maker"), .init("bob", "maker")], roles: ["maker": grants])
        let path = FileManager.default.temporaryDirectory.appending(path: "access-\(UUID().uuidString).yaml").path
        try file.yaml.write(toFile: path, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let (ann, bob) = (AccessScene.headers("ann"), AccessScene.headers("bob"))
        let scene = try ClusterScene(2, ["--config", path], headers: ann)
        let thing = Thing()
        #expect(try thing.advertise(scene.gateways[0], headers: ann).status == 202)
        func deadvertise(_ headers: [(String, String)], at gateway: GatewayProcess) throws -> Int {
            try gateway.request(
                "POST",
                "/v1/deadvertise",
                headers: headers + [("Content-Type", "application/json")],
                body: #"{"objectIds":["\#(thing.id)"]}"#
            ).status
        }
        try waitForRecords(scene)
        #expect(try thing.advertise(scene.gateways[1], headers: bob).status == 403)
        #expect(try deadvertise(bob, at: scene.gateways[1]) == 403)
        #expect(try deadvertise(ann, at: scene.gateways[1]) == 202)
        try waitUntil("it has no owner") { try thing.advertise(scene.gateways[0], headers: bob).status == 202 }
    }
}
