import Foundation
import TestSupport
import Testing

/// Two gateways at one broker, used one after the other by clients and routers.
@Suite(.exclusive, .frameChecks) struct TwoGatewaysTests {
    // MARK: - Cursors

    private static let channel = #""event":"channel","channelId":"c""#

    private func number(_ object: [String: Any]) -> Int? { (object["name"] as? String).flatMap { Int($0) } }

    @Test func cursorOfAnotherGatewayIsReportedAsGap() throws {
        let scene = try Scene()
        let other = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(scene.broker.port)"])
        try other.untilReady()
        let count = 500
        func publish(_ numbers: Range<Int>) throws {
            for number in numbers {
                try scene.agent.publish("coaty/3/-/CHN:c/source", #"{"object":\#(Scene.job("\(number)"))}"#)
            }
        }
        // Both gateways keep all events in their replay buffers.
        let clients = [try scene.gateway.frameClient(), try other.frameClient()]
        // They read only after all events were published.
        for client in clients { try client.subscribe("s", Self.channel + #","buffer":\#(count)"#) }
        try publish(0..<count)
        let cursors = try clients.map { client in
            try (0..<count).map { _ in try #require(try client.next(of: "s")["cursor"]) }
        }
        for position in [0, 100, count - 1] {
            let cursor = cursors[0][position]
            #expect(cursor != cursors[1][position])
            let resumed = try other.frameClient()
            try resumed.subscribe("r", Self.channel + #","since":"\#(cursor)""#)
            let gap = try resumed.next(of: "r")
            #expect(gap.op == "gap" && gap.json["dropped"] is NSNull, "\(gap)")
            let events = try other.eventStream("channel?channelId=c", headers: [("Last-Event-ID", cursor)])
            let reported = try #require(try events.next())
            #expect(reported.json["dropped"] is NSNull, "\(reported)")
            let next = count + (position == 0 ? 0 : position == 100 ? 1 : 2)
            try publish(next..<next + 1)
            // The next event is a new one, so there are no duplicates.
            #expect(try number(resumed.next(of: "r").object) == next)
            let data = try #require(try events.next()).json["data"] as? [String: Any]
            #expect(number(try #require(data?["object"] as? [String: Any])) == next)
        }
        // The gateway that created a cursor can resume from it.
        let known = try other.frameClient()
        try known.subscribe("k", Self.channel + #","since":"\#(cursors[1][100])""#)
        #expect(try number(known.next(of: "k").object) == 101)
    }

    // MARK: - Routers

    private static let names = ["None": "normal", "Sample": "normal", "Throttle": "normal"]

    private static let agents = (0..<2).map { _ in UUID().uuidString.lowercased() }
    private static let nodes = (0..<2).map { _ in UUID().uuidString.lowercased() }

    /// Advertises IO nodes of agents that do not depend on either gateway.
    private func advertiseNodes(_ agent: MQTTTestClient) throws {
        let sources = RoutingScene.ids.filter { Self.names[$0.key] != nil }.sorted { $0.key < $1.key }.map { name, id in
            #"{"coreType":"IoSource","objectType":"coaty.IoSource","name":"\#(name)","objectId":"\#(id)","#
                + #""valueType":"\#(RoutingScene.valueType)","updateRate":5000}"#
        }
        try agent.publish(
            "coaty/3/-/ADV:IoNode/\(Self.agents[0])",
            #"{"object":{"coreType":"IoNode","objectType":"coaty.IoNode","objectId":"\#(Self.nodes[0])","#
                + #""name":"TemperatureMeasurement","parentObjectId":"\#(Self.agents[0])","ioActors":[],"#
                + #""ioSources":[\#(sources.joined(separator: ","))]}}"#
        )
        try agent.publish(
            "coaty/3/-/ADV:IoNode/\(Self.agents[1])",
            #"{"object":{"coreType":"IoNode","objectType":"coaty.IoNode","objectId":"\#(Self.nodes[1])","#
                + #""name":"TemperatureMeasurement","parentObjectId":"\#(Self.agents[1])","ioSources":[],"#
                + #""ioActors":[\#(RoutingScene.actor("normal"))],"#
                + #""characteristics":{"isResponsibleForOperatingState":"normal"}}}"#
        )
    }

    private static let associations = ["None normal 5000", "Sample normal 5000", "Throttle normal 5000"]

    @Test(arguments: [0, 1]) func aStoppingGatewayLeavesAssociationsToTheOtherRouter(leaving: Int) throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let agent = try MQTTTestClient(port: broker.port)
        try agent.subscribe("coaty/#")
        let file = FileManager.default.temporaryDirectory.appending(path: "two-\(UUID().uuidString).yaml")
        defer { try? FileManager.default.removeItem(at: file) }
        try "{routing: {contexts: [{context: \(RoutingScene.context("normal")), rules: [\(RoutingScene.rule)]}]}}"
            .write(to: file, atomically: false, encoding: .utf8)
        func context(_ gateway: GatewayProcess) throws -> [String: Any] {
            let response = try gateway.request("GET", RoutingScene.path)
            return response.status == 200 ? response.json ?? [:] : [:]
        }
        func associations(_ gateway: GatewayProcess) throws -> [String] {
            RoutingScene.associations(try context(gateway)["associations"])
        }
        // The agents advertise their nodes again for the second gateway; the first already knows them.
        var gateways: [GatewayProcess] = []
        for _ in 0..<2 {
            let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)", "--config", file.path])
            gateways.append(gateway)
            try gateway.untilReady()
            try advertiseNodes(agent)
            try waitUntil("it routes") { try associations(gateway) == Self.associations }
        }
        let ids = try gateways.map { try #require(try context($0)["router"] as? String) }
        try waitUntil("each knows the other") {
            try (context(gateways[0])["otherRouters"] as? [String])?.contains(ids[1]) == true
                && (context(gateways[1])["otherRouters"] as? [String])?.contains(ids[0]) == true
        }
        let staying = 1 - leaving
        #expect(try gateways[leaving].stop() == 0)
        try agent.waitFor { $0.topic == "coaty/3/-/DAD/\(ids[leaving])" }
        func dissolved() -> [String] { RoutingScene.associates(agent.messages).filter { $0.hasPrefix("-") } }
        #expect(dissolved() == [])
        #expect(gateways[leaving].log.contains("associations are left to another router"))
        #expect(try associations(gateways[staying]) == Self.associations)
        try waitUntil("the other has gone") { try context(gateways[staying])["otherRouters"] as? [String] == [] }
        // The last router dissolves the associations.
        #expect(try gateways[staying].stop() == 0)
        try agent.waitFor { $0.topic == "coaty/3/-/DAD/\(ids[staying])" }
        #expect(dissolved().sorted() == ["-None normal", "-Sample normal", "-Throttle normal"])
    }
}
