import Base
import Coaty
import Foundation
import TestSupport
import Testing

@testable import CoatyGateway
@testable import Edge
@testable import Feeds

/// The contract, openapi.yaml: every listed operation is routed, and every routed operation is listed.
@Suite(.exclusive) struct ContractTests {
    @Test func listsEachRouteAndNoOther() async throws {
        let text = String(decoding: ContractResource.text, as: UTF8.self)
        let document = try YAMLNode.object(in: text)
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        let methods: Set<String> = ["get", "post", "put", "patch", "delete"]
        let listed = paths.flatMap { path, operations in
            operations.keys.filter(methods.contains).map { "\($0) \(path)" }
        }
        let scene = try await GateScene()
        let gateway = try Gateway(settings: GatewaySettings(), logger: .init(label: "test"))
        let routes = gateway.routes(scene.services, scene.manager, brokerAddress: "").all.routes.map { route in
            "\(route.method.rawValue.lowercased()) \(route.pathTemplate)"
        }
        #expect(Set(listed) == Set(routes))
        #expect((document["info"] as? [String: Any])?["version"] as? String == GatewayVersion.text)

        let parameters = (document["components"] as? [String: Any])?["parameters"] as? [String: [String: Any]]
        let event = parameters?["StreamEvent"]?["schema"] as? [String: Any]
        #expect(event?["enum"] as? [String] == Observation.names)
    }
}
