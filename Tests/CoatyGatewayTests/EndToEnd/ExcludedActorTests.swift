import Foundation
import TestSupport
import Testing

/// Associations that end while the agents of their IO points are not connected.
@Suite(.exclusive) struct ExcludedActorTests {
    @Test(arguments: [SIGTERM, SIGKILL])
    func valuesDoNotReachAnActorThatWasExcludedDuringAnOutage(_ signal: Int32) throws {
        let scene = try RoutingScene()
        let agents = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(scene.broker.port)"])
        func lease(_ members: String) throws {
            let body = #"{"contextName":"TemperatureMeasurement","leaseDuration":60000,\#(members)}"#
            let response = try agents.post("/v1/io/nodes", body)
            #expect(response.status == 201, "\(response.text)")
        }
        func value(_ actor: String) throws -> String {
            let id = RoutingScene.ids[actor] ?? ""
            return try agents.request("GET", "/v1/io/actors/\(id)/value").text
        }
        func untilValueArrives(_ text: String, at actor: String) throws {
            try waitUntil("\(text) arrives at \(actor)") {
                _ = try agents.post("/v1/io/sources/\(RoutingScene.ids["None"] ?? "")/values", text)
                return try value(actor) == text
            }
        }
        try lease(#""ioSources":[\#(RoutingScene.source("None", rate: nil))]"#)
        for state in ["normal", "emergency"] {
            try lease(
                #""ioActors":[\#(RoutingScene.actor(state))],"#
                    + #""characteristics":{"isResponsibleForOperatingState":"\#(state)"}"#
            )
        }
        try scene.untilAssociated(["None normal 5000"])
        try untilValueArrives("1", at: "normal")

        kill(try #require(scene.broker.pid), signal)
        try waitUntil("the outage is noticed") {
            try scene.gateway.request("GET", "/readyz").status == 503 && agents.request("GET", "/readyz").status == 503
        }
        // The agents return when the context has changed.
        agents.signal(SIGSTOP)
        try scene.broker.restart()
        try scene.gateway.untilReady()
        #expect(try scene.send("PATCH", #"{"operatingState":"emergency"}"#).status == 200)
        agents.signal(SIGCONT)
        try untilValueArrives("2", at: "emergency")
        try waitUntil("the excluded actor has no association") {
            let stream = try agents.stream("iostate?ioPointId=\(RoutingScene.ids["normal"] ?? "")")
            guard case .text(let frame) = try stream.receive() else { return false }
            return frame.contains(#""hasAssociations":false"#)
        }
        let last = try value("normal")
        try untilValueArrives("3", at: "emergency")
        #expect(try value("normal") == last)
        try scene.untilAssociated(["None emergency 5000"])
    }
}
