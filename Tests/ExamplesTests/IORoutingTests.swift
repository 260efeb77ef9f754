import Foundation
import TestSupport
import Testing

/// The temperature scenario with sources, actors and gateway in separate processes.
@Suite(.exclusive) struct IORoutingTests {
    private static let path = "/v1/routing/contexts/b61740a6-95d7-4d1a-8be5-53f3aa1e0b79"

    @Test func patchReroutesAllValuesAndBack() throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let gateway = try GatewayProcess([
            "--broker", "mqtt://127.0.0.1:\(broker.port)",
            "--config", ExampleProcess.folder("io-routing").appending(path: "gateway.yaml").path,
        ])
        // In milliseconds. A burst of the sources takes a second, and so does the pause after it.
        let rate = "1000"
        let normal = try ExampleProcess("io-routing-actor", ["normal", rate], broker: broker)
        let emergency = try ExampleProcess("io-routing-actor", ["emergency", rate], broker: broker)
        let sources = try ExampleProcess("io-routing-sources", [rate], broker: broker)

        try waitUntil("the values of all three sources come") {
            Self.sources(of: normal) == ["1", "2", "3"] && !emergency.lines.isEmpty
        }
        #expect(emergency.lines == ["not associated"])
        try patch("emergency", at: gateway.port)
        try waitUntil("they come to the other actor") {
            Self.sources(of: emergency) == ["1", "2", "3"] && normal.lines.last == "not associated"
        }
        let count = normal.lines.count
        try patch("normal", at: gateway.port)
        try waitUntil("they come back") {
            Self.sources(of: normal, from: count) == ["1", "2", "3"] && emergency.lines.last == "not associated"
        }
        #expect(normal.lines[count] == "associated")

        // Only the first source publishes each value immediately.
        let published = sources.lines.filter { $0.contains("published") }
        #expect(published.allSatisfy { $0.hasPrefix("1") && $0.components(separatedBy: "published").count == 2 })
        for agent in [normal, emergency, sources] { #expect(try agent.stop() == 0) }
    }

    @Test(.needs(.mosquitto)) func demoPrintsInstructionsAndCleansUp() throws {
        let demo = try ExampleProcess(
            ExampleProcess.folder("io-routing").appending(path: "demo"),
            [ExampleProcess.programs.path, "--port", "0", "--embedded-broker-listen", "127.0.0.1:0"]
        )
        func shows(_ name: String, _ text: String) -> Bool {
            demo.lines.contains { $0.hasPrefix(name) && $0.hasSuffix("| " + text) }
        }
        try waitUntil("the demo runs") {
            shows("normal", "associated") && shows("emergency", "not associated")
                && demo.lines.contains { $0.hasPrefix("curl -X PATCH http://127.0.0.1:") }
        }
        let ready = try #require(demo.lines.first { $0.contains("coaty-gateway ready on ") })
        let ports = ready.matches(of: /127\.0\.0\.1:(\d+)/).compactMap { UInt16($0.1) }
        try #require(ports.count == 2)
        try patch("emergency", at: ports[0])
        try waitUntil("the values move") { shows("emergency", "associated") && shows("normal", "not associated") }

        #expect(Self.agents(onBroker: ports[1]) >= 3)
        #expect(try demo.stop() == 0)
        #expect(Self.agents(onBroker: ports[1]) == 0)
        for port in ports { #expect(throws: (any Error).self) { try RawConnection(port: port) } }
    }

    private func patch(_ state: String, at port: UInt16) throws {
        let response = try RawConnection(port: port).request(
            "PATCH",
            Self.path,
            headers: [("Content-Type", "application/merge-patch+json")],
            body: #"{"operatingState":"\#(state)"}"#
        )
        #expect(response.status == 200, "\(response.text)")
    }

    /// Returns the sources of the values that an actor has printed from a line on, identified by their tens.
    private static func sources(of actor: ExampleProcess, from line: Int = 0) -> Set<String> {
        Set(actor.lines.dropFirst(line).filter { $0.hasSuffix(" °C") }.map { String($0.prefix(1)) })
    }

    /// Returns the number of processes that have this broker in their environment.
    private static func agents(onBroker port: UInt16) -> Int {
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        let variable = Data("COATY_BROKER=mqtt://127.0.0.1:\(port)\0".utf8)
        return processes.filter { Int($0) != nil }.count { process in
            FileManager.default.contents(atPath: "/proc/\(process)/environ")?.range(of: variable) != nil
        }
    }
}
