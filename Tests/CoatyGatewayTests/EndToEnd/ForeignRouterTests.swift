import Foundation
import TestSupport
import Testing

/// The list of associations in an IO context that another gateway routes.
@Suite(.exclusive) struct ForeignRouterTests {
    private static let associations = ["None normal 5000", "Sample normal 5000", "Throttle normal 5000"]

    @Test func associationsStayListedWhileTheRouterReconnects() throws {
        let scene = try RoutingScene()
        let observer = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(scene.broker.port)"])
        func routed() throws -> [String: Any] {
            let response = try observer.request("GET", RoutingScene.path)
            return response.status == 200 ? response.json ?? [:] : [:]
        }
        func associations() throws -> [String] { RoutingScene.associations(try routed()["associations"]) }

        try waitUntil("the context is listed") { try routed()["router"] != nil }
        try scene.leaseAll()
        try waitUntil("its associations are listed") { try associations() == Self.associations }
        let router = try #require(try routed()["router"] as? String)

        // If two clients use the same client id, the broker disconnects the first and publishes its will.
        let clientId = "Coaty" + router.replacing("-", with: "").prefix(18)
        _ = try MQTTTestClient(port: scene.broker.port, clientID: clientId)
        try scene.agent.waitFor { $0.topic == "coaty/3/-/DAD/\(router)" && $0.text.contains(router) }
        try waitUntil("the router is back") {
            let events = scene.agent.messages.drop { $0.topic != "coaty/3/-/DAD/\(router)" }
            return events.contains { $0.topic == "coaty/3/-/ADV:IoContext/\(router)" }
        }
        // When the gateway lists a context that was advertised later, it has processed all earlier events.
        let later = UUID().uuidString.lowercased()
        let context = #"{"coreType":"IoContext","objectType":"coaty.IoContext","objectId":"\#(later)","name":"later"}"#
        try scene.agent.publish("coaty/3/-/ADV:IoContext/\(later)", #"{"object":\#(context)}"#)
        try waitUntil("a later context is listed") {
            try observer.request("GET", "/v1/routing/contexts/\(later)").status == 200
        }
        #expect(try routed()["router"] as? String == router)
        #expect(try associations() == Self.associations)
        // The router publishes its associations again when it has found its nodes.
        try waitUntil("the associations are published again") {
            let events = scene.agent.messages.drop { $0.topic != "coaty/3/-/DAD/\(router)" }
            return RoutingScene.associates(events).sorted() == Self.associations.map { "+" + $0 }
        }
        #expect(try associations() == Self.associations)
    }

    @Test func listsThatMayLackAssociationsAreIncomplete() throws {
        let scene = try RoutingScene()
        try scene.leaseAll()
        let observer = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(scene.broker.port)"])
        func routed() throws -> [String: Any]? {
            let response = try observer.request("GET", RoutingScene.path)
            return response.status == 200 ? response.json : nil
        }
        // The observer has joined after the associations were published, and the router doesn't repeat them for it.
        try waitUntil("the context is listed") { (try routed()?["nodes"] as? [Any])?.count == 3 }
        #expect(try routed()?["complete"] as? Bool == false)
        let list = try observer.request("GET", "/v1/routing/contexts").json?["contexts"] as? [[String: Any]]
        #expect(list?.map { $0["complete"] as? Bool } == [false])
        let hosted = try scene.context()
        #expect(hosted["complete"] as? Bool == true)

        // Values flow after an outage, whatever the observer lists.
        scene.broker.kill()
        try waitUntil("the outage is noticed") { try observer.request("GET", "/readyz").status == 503 }
        try scene.broker.restart()
        try waitUntil("all are back") {
            try observer.request("GET", "/readyz").status == 200
                && scene.gateway.request("GET", "/readyz").status == 200 && routed()?["router"] != nil
        }
        #expect(try routed()?["complete"] as? Bool == false)
        try scene.untilAssociated(Self.associations)
        #expect(try scene.context()["complete"] as? Bool == true)
    }
}
