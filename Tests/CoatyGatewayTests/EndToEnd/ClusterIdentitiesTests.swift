import Foundation
import TestSupport
import Testing

/// Identities of clients in a cluster.
@Suite(.exclusive, .frameChecks) struct ClusterIdentitiesTests {
    private struct Identity {
        let id: String
        let token: String
    }

    private func identify(_ client: FrameClient, resuming former: Identity? = nil) throws -> Identity {
        let resume = former.map { #","resume":"\#($0.token)""# } ?? ""
        let answer = try client.ask("identify", #""name":"Kiosk""# + resume)
        let identity = try #require(answer.json["identity"] as? [String: Any], "\(answer)")
        return Identity(id: try #require(identity["objectId"] as? String), token: try #require(answer["resume"]))
    }

    /// Returns the events with the life of an identity: `ADV:Identity` and `DAD`.
    private func life(_ id: String, in scene: ClusterScene) -> [String] {
        scene.agent.messages.compactMap { message in
            let parts = message.topic.split(separator: "/")
            let isLife = parts.last.map(String.init) == id && parts.count == 5
            return isLife && ["ADV:Identity", "DAD"].contains(parts[3]) ? String(parts[3]) : nil
        }
    }

    private func isOnline(_ id: String, at gateway: GatewayProcess) throws -> Bool {
        try gateway.request("GET", "/v1/agents?online=true").text.contains(id)
    }

    @Test(arguments: [SIGKILL, SIGTERM]) func clientKeepsItsIdentityAtAnotherGateway(signal: Int32) throws {
        let scene = try ClusterScene()
        let first = try scene.gateways[0].frameClient()
        let identity = try identify(first)
        scene.gateways[0].signal(signal)
        _ = try scene.agent.waitFor { $0.topic == "coaty/3/-/DAD/\(identity.id)" }
        let second = try scene.gateways[1].frameClient()
        let resumed = try identify(second, resuming: identity)
        #expect(resumed.id == identity.id)
        #expect(life(identity.id, in: scene) == ["ADV:Identity", "DAD", "ADV:Identity"])
        #expect(try second.ask("publish", #""event":"channel","channelId":"c","data":{"objects":[]}"#).op == "ok")
        _ = try scene.agent.waitFor { $0.topic == "coaty/3/-/CHN:c/\(identity.id)" }
        try waitUntil("it is online") { try isOnline(identity.id, at: scene.gateways[1]) }
    }

    @Test func otherGatewayReleasesTheIdentity() throws {
        let scene = try ClusterScene()
        var client = try scene.gateways[0].frameClient()
        var identity = try identify(client)
        // Without the other gateway's record, the broker ends the agent there.
        for number in 1...4 {
            let next = try scene.gateways[number % 2].frameClient()
            let resumed = try identify(next, resuming: identity)
            #expect(resumed.id == identity.id)
            #expect(try client.closeCode() == 4506)
            (client, identity) = (next, resumed)
        }
        try waitUntil("it is online at both") { try scene.gateways.allSatisfy { try isOnline(identity.id, at: $0) } }
        #expect(life(identity.id, in: scene).last == "ADV:Identity")
    }

    /// A gateway that was frozen when the client moved releases the identity when it continues: as an answer to the
    /// question, or, if its broker connection has ended, when it hears of the other one.
    @Test(arguments: [false, true]) func frozenGatewayReleasesTheIdentityLater(disconnected isDisconnected: Bool) throws
    {
        let scene = try ClusterScene(2, ["--broker-keepalive", "5"])
        let first = try scene.gateways[0].frameClient()
        let identity = try identify(first)
        let gateway = try scene.gateways[0].identityId()
        let second = try scene.gateways[1].frameClient()
        scene.gateways[0].signal(SIGSTOP)
        let resumed = try identify(second, resuming: identity)
        #expect(resumed.id == identity.id)
        if isDisconnected { _ = try scene.agent.waitFor { $0.topic == "coaty/3/-/DAD/\(gateway)" } }
        scene.gateways[0].signal(SIGCONT)
        #expect(try first.closeCode() == 4506)
        try waitUntil("it is online at both") { try scene.gateways.allSatisfy { try isOnline(identity.id, at: $0) } }
        #expect(try second.ask("publish", #""event":"channel","channelId":"c","data":{"objects":[]}"#).op == "ok")
        _ = try scene.agent.waitFor { $0.topic == "coaty/3/-/CHN:c/\(identity.id)" }
        try waitUntil("it is advertised last") { life(identity.id, in: scene).last == "ADV:Identity" }
    }
}
