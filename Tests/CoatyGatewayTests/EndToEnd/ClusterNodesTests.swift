import Foundation
import TestSupport
import Testing

/// IO nodes of clients in a cluster.
@Suite(.exclusive, .frameChecks) struct ClusterNodesTests {
    private func register(_ gateway: GatewayProcess) throws -> String {
        let body =
            #"{"contextName":"Room","name":"n","leaseDuration":60000,"characteristics":{"floor":2},"#
            + #""ioSources":[{"name":"s","valueType":"t","updateStrategy":"Sample","updateRate":50}],"#
            + #""ioActors":[{"name":"a","valueType":"t"}]}"#
        let answer = try gateway.post("/v1/io/nodes", body)
        try #require(answer.status == 201, "\(answer.text)")
        return try #require((answer.json?["node"] as? [String: Any])?["objectId"] as? String)
    }

    private func renew(_ id: String, at gateway: GatewayProcess, _ body: String = "") throws -> RawConnection.Response {
        try gateway.post("/v1/io/nodes/\(id)/lease", body)
    }

    /// Returns the node without the id of its agent; nil if the gateway does not have it.
    private func node(_ id: String, at gateway: GatewayProcess) throws -> NSDictionary? {
        var node = try gateway.request("GET", "/v1/io/nodes/\(id)").json?["node"] as? [String: Any]
        node?["parentObjectId"] = nil
        return node as NSDictionary?
    }

    private func delete(_ id: String, at gateway: GatewayProcess) throws -> Int {
        try gateway.request("DELETE", "/v1/io/nodes/\(id)").status
    }

    @Test func leasesAreRenewedAndEndedAtAnyGateway() throws {
        let scene = try ClusterScene()
        let id = try register(scene.gateways[0])
        try waitUntil("the other gateway knows it") { try renew(id, at: scene.gateways[1]).status == 200 }
        let renewed = try renew(id, at: scene.gateways[1], #"{"leaseDuration":3600000}"#)
        #expect(renewed.text.hasPrefix(#"{"lease":{"duration":3600000,"#))
        #expect(try renew(id, at: scene.gateways[1], #"{"leaseDuration":1}"#).status == 400)
        let same = #"{"contextName":"Room","objectId":"\#(id)","ioActors":[{"name":"a","valueType":"t"}]}"#
        #expect(try scene.gateways[1].post("/v1/io/nodes", same).status == 409)
        #expect(try delete(id, at: scene.gateways[1]) == 204)
        #expect(try node(id, at: scene.gateways[0]) == nil)
        #expect(try renew(id, at: scene.gateways[1]).status == 404)
    }

    @Test(arguments: [SIGKILL, SIGTERM]) func nodesSurviveTheirGateway(signal: Int32) throws {
        let scene = try ClusterScene(3)
        let gateway = scene.gateways[0]
        let id = try register(gateway)
        let before = try #require(try node(id, at: gateway))
        for other in scene.gateways { try waitUntil("it is known") { try renew(id, at: other).status == 200 } }
        gateway.signal(signal)
        scene.kill(gateway)
        let taker = try #require(try scene.gateways.min { try $0.identityId() < $1.identityId() })
        try waitUntil("it is registered again") { try node(id, at: taker) != nil }
        #expect(try node(id, at: taker) == before)
        for other in scene.gateways {
            try waitUntil("it can be renewed") { try renew(id, at: other).status == 200 }
        }
        let other = try #require(scene.gateways.first { $0 !== taker })
        #expect(try node(id, at: other) == nil)
        // 504 if the gateway that has it needs long; it withdraws the node nevertheless.
        try waitUntil("it is withdrawn") { try [204, 404].contains(delete(id, at: other)) }
        #expect(try node(id, at: taker) == nil)
    }
}
