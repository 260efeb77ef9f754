import Foundation
import TestSupport
import Testing

@testable import CoatyGateway
@testable import Feeds
@testable import Gate

/// The most frequent mistakes of clients. The answers suffice to correct them.
@Suite(.exclusive, .frameChecks) struct MistakeTests {
    @Test func eachMistakeGetsItsExactAnswer() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        #expect(Mistake.all.count >= 50)
        for row in Mistake.all {
            let answer = try Mistake.answer(to: row, of: scene.gateway, client)
            #expect(answer == row.answer, "\(row.request) \(row.body ?? "")")
        }
        #expect(try client.ask("ping").op == "pong")
    }

    /// Similar but correct requests are accepted, and no refused request was published.
    @Test func correctedRequestsAreAccepted() throws {
        let scene = try Scene()
        let gateway = scene.gateway
        for parameter in ["timeout=500ms", "timeout=1s", "timeout=100", "timeout=0100ms"] {
            #expect(try gateway.post("/v1/discover?\(parameter)", #"{"objectTypes":["t"]}"#).status == 200)
        }
        let client = try gateway.frameClient()
        try client.subscribe("s", #""event":"channel","channelId":"c","throttle":"500ms""#)
        #expect(
            try client.request(#""event":"discover","data":{"objectTypes":["t"]},"timeout":"10ms""#).reason == "timeout"
        )
        let filter = #"["name",["Equals","x"]]"#
        #expect(try gateway.request("GET", "/v1/objects?filter=\(filter.percentEncoded)").status == 200)
        let query = #"{"objectTypes":["t"],"objectFilter":{"conditions":\#(filter)}}"#
        #expect(try gateway.post("/v1/query?timeout=1", query).status == 200)
        #expect(
            scene.agent.messages.allSatisfy { !$0.topic.contains("/ADV:CoatyObject/") && !$0.topic.contains("/CHN:") }
        )
    }

    /// Ids of other agents are opaque, and clients can refer to their objects whatever form the ids have.
    @Test func idsOfOtherAgentsMayHaveAnyForm() throws {
        let scene = try Scene()
        let gateway = scene.gateway
        let lamp = #"{"coreType":"CoatyObject","objectType":"t","objectId":"lamp 1","name":"n"}"#
        try scene.agent.publish("coaty/3/-/ADV:CoatyObject/agent", #"{"object":\#(lamp)}"#)
        try waitUntil("the object is registered") { try gateway.request("GET", "/v1/objects/lamp%201").status == 200 }
        #expect(try gateway.post("/v1/update?timeout=50ms&min=1", #"{"object":\#(lamp)}"#).problem == "no-answer")
        #expect(try gateway.post("/v1/discover?timeout=50ms", #"{"objectId":"lamp 1"}"#).status == 200)
        #expect(try gateway.post("/v1/deadvertise", #"{"objectIds":["lamp 1"]}"#).status == 202)
        #expect(try gateway.post("/v1/advertise", #"{"object":\#(lamp)}"#).status == 400)
        let id = "5B1C1B1E-4C4B-4D0E-9D5A-0D4F1B1C1B1E"
        let own = lamp.replacing("lamp 1", with: id)
        #expect(try gateway.post("/v1/advertise", #"{"object":\#(own)}"#).status == 202)
        let batch =
            #"[{"event":"advertise","data":{"object":\#(lamp)}},{"event":"advertise","data":{"object":\#(own)}}]"#
        let results = try gateway.post("/v1/batch", batch).json?["results"] as? [[String: Any]]
        #expect(results?.map { $0["status"] as? Int } == [400, 202])
        #expect(results?.first?["pointer"] as? String == "/data/object/objectId")
    }

    /// RFC 9562, section 4: UUIDs are read without regard to case. On the wire, they stay as they were.
    @Test func uuidsOfObjectsAreFoundInAnotherCase() throws {
        let scene = try Scene()
        for id in ["5b1c1b1e-4c4b-4d0e-9d5a-0d4f1b1c1b1e", "5B1C1B1E-4C4B-4D0E-9D5A-0D4F1B1C1B1F"] {
            let lamp = #"{"coreType":"CoatyObject","objectType":"t","objectId":"\#(id)","name":"n"}"#
            try scene.agent.publish("coaty/3/-/ADV:CoatyObject/agent", #"{"object":\#(lamp)}"#)
            for spelling in [id, id.lowercased(), id.uppercased()] {
                try waitUntil("\(spelling) is found") {
                    try scene.gateway.request("GET", "/v1/objects/\(spelling)").text.contains(#""objectId":"\#(id)""#)
                }
            }
        }
    }

    @Test func foreignQueryParametersAreIgnored() throws {
        let scene = try Scene()
        for target in [
            "/v1/agents?utm_source=mail&online=true&_=1763928000&_ga=2", "/v1/info?_", "/v1/objects?&limit=1&",
        ] { #expect(try scene.gateway.request("GET", target).status == 200, "\(target)") }
        let client = try scene.gateway.frameClient("channel?channelId=c&_=1&utm_medium=chat")
        #expect(try client.next().op == "ok")
        _ = try scene.gateway.eventStream("channel?channelId=c&_=1")
        // Probes, scrapers and browsers may add arbitrary parameters.
        for path in ["/healthz", "/readyz", "/metrics", "/openapi.yaml", "/", "/client.js", "/console/app.js"] {
            #expect(try scene.gateway.request("GET", path + "?v=2&debug").status == 200, "\(path)")
        }
    }

    /// Each operation accepts exactly the parameters that the contract lists.
    @Test func operationsTakeTheParametersOfTheContract() throws {
        let scene = try Scene()
        let text = try scene.gateway.request("GET", "/openapi.yaml").text
        let contract = try YAMLNode.object(in: text)
        let open: Set = [
            "/metrics", "/healthz", "/readyz", "/openapi.yaml", "/", "/client.js", "/client.d.ts", "/console/{file}",
        ]
        var count = 0
        for operation in try Self.operations(contract) where !open.contains(operation.path) {
            count += 1
            let paths =
                operation.path.contains("{event}")
                ? Observation.names.map { operation.path.replacing("{event}", with: $0) }
                : [operation.path.replacing(/\{[a-zA-Z]+\}/, with: "x")]
            var taken: Set<String> = []
            for path in paths {
                let target = path + "?nothing_like_it=1"
                let problem =
                    operation.path.hasPrefix("/v1/ws")
                    ? try Self.json(WebSocketClient(port: scene.gateway.port).shakeHands(path: target).body)
                    : try scene.gateway.request(operation.method, target).json
                #expect(problem?["parameter"] as? String == "nothing_like_it", "\(operation): \(problem ?? [:])")
                let detail = problem?["detail"] as? String ?? ""
                let names = detail.split(separator: "Allowed: ").dropFirst().first?.dropLast() ?? ""
                taken.formUnion(names.split(separator: ", ").map(String.init))
            }
            #expect(taken == operation.parameters, "\(operation.method) \(operation.path)")
        }
        #expect(count > 30)
    }

    private struct Operation {
        let method: String
        let path: String
        let parameters: Set<String>
    }

    private static func json(_ body: [UInt8]) -> [String: Any]? {
        (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any]
    }

    /// Returns the operations of the contract, with the names of their query parameters.
    private static func operations(_ contract: [String: Any]) throws -> [Operation] {
        let components = try #require(contract["components"] as? [String: Any])
        let shared = try #require(components["parameters"] as? [String: [String: Any]])
        func names(_ list: Any?) -> [String] {
            (list as? [[String: Any]] ?? []).compactMap { parameter in
                let reference = (parameter["$ref"] as? String)?.split(separator: "/").last.map(String.init)
                let parameter = reference.flatMap { shared[$0] } ?? parameter
                return parameter["in"] as? String == "query" ? parameter["name"] as? String : nil
            }
        }
        let paths = try #require(contract["paths"] as? [String: [String: Any]])
        return paths.flatMap { path, item in
            item.compactMap { method, value in
                guard ["get", "post", "put", "patch", "delete"].contains(method), let value = value as? [String: Any]
                else { return nil }
                let security = value["security"] as? [[String: Any]] ?? []
                let ticket = security.contains { $0["ticket"] != nil } ? ["ticket"] : []
                return Operation(
                    method: method.uppercased(),
                    path: path,
                    parameters: Set(names(item["parameters"]) + names(value["parameters"]) + ticket)
                )
            }
        }
    }
}
