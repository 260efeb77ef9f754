import Foundation
import TestSupport
import Testing

/// The demo agent that `--demo true` starts in the gateway.
@Suite(.exclusive) struct DemoTests {
    private static let thermometer = "com.example.demo.Thermometer"

    private func objects(_ gateway: GatewayProcess, _ objectType: String) throws -> [[String: Any]] {
        let list = try gateway.request("GET", "/v1/objects?objectType=\(objectType)")
        return try #require(list.json?["objects"] as? [[String: Any]], "\(list.text)")
    }

    /// Sends a request, and returns its first response.
    private func answer(_ gateway: GatewayProcess, _ target: String, _ body: String) throws -> [String: Any] {
        let response = try gateway.post(target, body)
        let responses = response.json?["responses"] as? [[String: Any]]
        return try #require(responses?.first?["data"] as? [String: Any], "\(response.text)")
    }

    private func demo() throws -> GatewayProcess {
        try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0", "--demo", "true"])
    }

    @Test func objectsChangeAndAreFound() throws {
        let gateway = try demo()
        let stream = try gateway.stream("advertise?objectType=\(Self.thermometer)")
        var temperatures: Set<Substring> = []
        while temperatures.count < 2 {
            let text = try stream.receiveWithoutCursor()
            temperatures.insert(try #require(text.firstMatch(of: /"temperature":([0-9.]+)/)?.1))
        }
        let types = #"{"objectTypes":["\#(Self.thermometer)"]}"#
        let discovered = try answer(gateway, "/v1/discover?timeout=20000&limit=1", types)
        let object = try #require(discovered["object"] as? [String: Any])
        #expect(object["name"] as? String == "Demo thermometer" && object["unit"] as? String == "Celsius")

        let filter = #"{"conditions":["brightness",["GreaterThan",50]]}"#
        let body = #"{"coreTypes":["CoatyObject"],"objectFilter":\#(filter)}"#
        let found = try answer(gateway, "/v1/query?timeout=20000&limit=1", body)["objects"] as? [[String: Any]]
        #expect(found?.map { $0["name"] as? String } == ["Demo light"])
        #expect(try gateway.stop() == 0)
        #expect(!gateway.log.contains("warning") && !gateway.log.contains("error"), "\(gateway.log)")
    }

    @Test func callSwitchesTheLight() throws {
        let gateway = try demo()
        func call(_ parameters: String) throws -> [String: Any] {
            let target = "/v1/call/com.example.demo.switchLight?timeout=20000&limit=1"
            return try answer(gateway, target, #"{"parameters":\#(parameters)}"#)
        }
        let result = try call(#"{"on":false,"brightness":30}"#)["result"] as? [String: Any]
        #expect(result?["isOn"] as? Bool == false && result?["brightness"] as? Double == 30)
        try waitUntil("the light is off") {
            try objects(gateway, "com.example.demo.Light").first?["isOn"] as? Bool == false
        }
        for (parameters, message) in [
            (#"{"on":"yes"}"#, "on must be true or false"), ("{}", "on must be true or false"),
            (#"{"on":true,"brightness":101}"#, "brightness must be a number from 0 to 100"),
            (#"{"on":true,"colour":1}"#, "there is no parameter colour, only on and brightness"),
            ("[true]", #"parameters must be an object such as {"on": true, "brightness": 50}"#),
        ] {
            let error = try call(parameters)["error"] as? [String: Any]
            #expect(error?["code"] as? Int == -32602 && error?["message"] as? String == message, "\(parameters)")
        }
        let light = try #require(try objects(gateway, "com.example.demo.Light").first)
        #expect(light["isOn"] as? Bool == false && light["brightness"] as? Double == 30, "errors change nothing")
        let operation = try #require((light["operations"] as? [[String: Any]])?.first)
        #expect(operation["name"] as? String == "com.example.demo.switchLight")
        let example = try JSONSerialization.data(withJSONObject: try #require(operation["example"]))
        #expect(try call(String(decoding: example, as: UTF8.self))["error"] == nil)
    }

    @Test func valuesAreRoutedByTheOperatingState() throws {
        let gateway = try demo()
        func shows(_ name: String) throws -> Bool {
            try objects(gateway, "com.example.demo.Display").first?[name] is NSNumber
        }
        try waitUntil("the day's display gets values") { try shows("day") && shows("humidity") }
        #expect(try !shows("night"))
        let path = "/v1/routing/contexts/3c9d2f0e-6b14-4f9e-8a57-d0c4e7b1a962"
        let patched = try gateway.request(
            "PATCH",
            path,
            headers: [("Content-Type", "application/merge-patch+json")],
            body: #"{"operatingState":"night"}"#
        )
        #expect(patched.status == 200, "\(patched.text)")
        try waitUntil("the night's display gets them") { try shows("night") && !shows("day") }
        #expect(try shows("humidity"))
    }

    @Test func demoAgentLeavesBeforeTheGateway() throws {
        let scene = try Scene(["--demo", "true"])
        func identity(_ name: String) throws -> String {
            let joined = try scene.agent.waitFor {
                $0.topic.contains("/ADV:Identity/") && $0.text.contains(#""name":"\#(name)""#)
            }
            return String(try #require(joined.topic.split(separator: "/").last))
        }
        let demo = try identity("Demo agent (coaty-gateway --demo)")
        let gateway = try identity("coaty-gateway")
        _ = try scene.agent.waitFor { $0.topic.contains("/ADV::com.example.demo.Display/") }
        let objects = scene.agent.messages.filter {
            $0.topic.hasSuffix(demo) && $0.topic.contains("/ADV:CoatyObject/")
        }
        #expect(
            objects.allSatisfy {
                $0.text.contains(#""name":"Demo "#) && $0.text.contains(#""objectType":"com.example.demo."#)
            }
        )
        #expect(try scene.gateway.stop() == 0)
        let left = scene.agent.messages.filter { $0.topic.contains("/DAD/") }
            .compactMap { $0.topic.split(separator: "/").last }
        #expect(left.map(String.init) == [demo, gateway])
    }

    @Test func demoStartsWhenTheBrokerIsAvailable() throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        broker.kill()
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)", "--demo", "true"])
        #expect(gateway.output.hasPrefix("coaty-gateway listening on "))
        try broker.restart()
        try waitUntil("its objects are there") { try !objects(gateway, Self.thermometer).isEmpty }
        broker.kill()
        try waitUntil("the broker is away") { try gateway.request("GET", "/readyz").status == 503 }
        #expect(try gateway.stop() == 0)
    }

    @Test func demoIsDisabledByDefault() throws {
        let scene = try Scene()
        #expect(!scene.agent.messages.contains { $0.text.contains("demo") })
        let refused = try GatewayProcess(unready: ["--demo", "yes"])
        #expect(try refused.waitForEnd() != 0 && refused.log.contains("--demo: must be true or false"))
    }

    /// The demo is not a client: it needs no grant, and grants nothing.
    @Test func demoDoesNotChangeAccess() throws {
        let gateway = try GatewayProcess(
            ["--embedded-broker-listen", "127.0.0.1:0", "--demo", "true"],
            environment: ["COATY_GATEWAY_TOKEN": "0123456789abcdef"]
        )
        #expect(try gateway.request("GET", "/v1/objects").status == 401)
        try waitUntil("its objects are there") {
            let headers = [("Authorization", "Bearer 0123456789abcdef")]
            return try gateway.request("GET", "/v1/objects", headers: headers).text.contains("Demo thermometer")
        }
    }
}
