import Foundation
import TestSupport
import Testing

/// Gateways of a cluster that route the context of ``RoutingScene``, and a gateway outside of the cluster with the IO
/// nodes.
final class RoutingClusterScene {
    let cluster: ClusterScene
    private let folder = FileManager.default.temporaryDirectory.appending(path: "routing-\(UUID().uuidString)")
    private let hasState: Bool
    /// Leases the nodes.
    private let nodes: GatewayProcess

    var gateways: [GatewayProcess] { cluster.gateways }
    var agent: MQTTTestClient { cluster.agent }

    /// - Parameter hasState: whether each gateway has a state directory.
    init(_ count: Int = 2, hasState: Bool = false) throws {
        self.hasState = hasState
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try "{routing: {contexts: [{context: \(RoutingScene.context("normal")), rules: [\(RoutingScene.rule)]}]}}"
            .write(to: folder.appending(path: "gateway.yaml"), atomically: false, encoding: .utf8)
        cluster = try ClusterScene(0)
        nodes = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(cluster.broker.port)"])
        for index in 0..<count { try start(state: index) }
        try cluster.waitUntilComplete()
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// The flags of a gateway that routes the context.
    var routing: [String] { ["--config", folder.appending(path: "gateway.yaml").path] }

    /// Starts one more gateway.
    ///
    /// - Parameter state: the number of its state directory.
    @discardableResult
    func start(state: Int = 0) throws -> GatewayProcess {
        let state = hasState ? ["--state-directory", folder.appending(path: "state-\(state)").path] : []
        return try cluster.start(routing + state)
    }

    /// Starts a gateway outside of the cluster that routes the same context.
    func startOther() throws -> GatewayProcess {
        try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(cluster.broker.port)"] + routing)
    }

    /// Leases the sources of the guide and the actor of the normal state.
    func lease() throws {
        for members in [
            #""ioSources":[\#(RoutingScene.source("None", rate: nil)),\#(RoutingScene.source("Sample"))]"#,
            #""ioActors":[\#(RoutingScene.actor("normal"))],"#
                + #""characteristics":{"isResponsibleForOperatingState":"normal"}"#,
        ] {
            let response = try nodes.post("/v1/io/nodes", #"{"contextName":"TemperatureMeasurement",\#(members)}"#)
            try #require(response.status == 201, "\(response.text)")
        }
        try waitUntil("all gateways have decided") {
            try gateways.allSatisfy { try associations($0) == RoutingClusterTests.associations }
        }
    }

    /// Waits until all gateways agree on the one that speaks, and returns it and the others.
    func speaker() throws -> (speaker: GatewayProcess, silent: [GatewayProcess]) {
        var speaker: GatewayProcess?
        try waitUntil("all agree on the gateway that speaks") {
            let named = try Set(gateways.map { try Self.status($0)?["speaker"] as? String })
            guard named.count == 1, let id = named.first ?? nil else { return false }
            speaker = try gateways.first { try $0.identityId() == id }
            return speaker != nil
        }
        let found = try #require(speaker)
        return (found, gateways.filter { $0 !== found })
    }

    // MARK: - Requests

    /// The routing of the context in the status of a gateway.
    static func status(_ gateway: GatewayProcess) throws -> [String: Any]? {
        let cluster = try gateway.request("GET", "/v1/status").json?["cluster"] as? [String: Any]
        return (cluster?["contexts"] as? [[String: Any]])?.first
    }

    func context(_ gateway: GatewayProcess) throws -> [String: Any] {
        let response = try gateway.request("GET", RoutingScene.path)
        return response.status == 200 ? response.json ?? [:] : [:]
    }

    func associations(_ gateway: GatewayProcess) throws -> [String] {
        RoutingScene.associations(try context(gateway)["associations"])
    }

    func send(
        _ method: String,
        _ body: String,
        to path: String = RoutingScene.path,
        at gateway: GatewayProcess,
        ifMatch: String? = nil
    ) throws -> RawConnection.Response {
        let headers = [("Content-Type", "application/json")] + (ifMatch.map { [("If-Match", $0)] } ?? [])
        return try gateway.request(method, path, headers: headers, body: body)
    }

    /// Sends a change of the context without waiting for its response.
    func begin(
        _ method: String,
        _ body: String,
        at gateway: GatewayProcess,
        ifMatch: String? = nil
    ) throws -> RawConnection {
        let connection = try RawConnection(port: gateway.port)
        let condition = ifMatch.map { "If-Match: \($0)\r\n" } ?? ""
        try connection.send(
            "\(method) \(RoutingScene.path) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                + "\(condition)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        )
        return connection
    }

    /// Returns a resource with its tag, which must be the same at all gateways.
    func common(_ path: String) throws -> (text: String, etag: String?) {
        var all: [(text: String, etag: String?)] = []
        try waitUntil("all gateways have the same version") {
            all = try gateways.map { gateway in
                let response = try gateway.request("GET", path)
                return (response.text, response.headers["etag"])
            }
            return Set(all.map(\.etag)).count == 1
        }
        return try #require(all.first)
    }

    // MARK: - Received messages

    /// The published associations of a gateway; of all without an argument.
    func associates(by gateway: GatewayProcess? = nil, after count: Int = 0) throws -> [String] {
        let id = try gateway?.identityId()
        return RoutingScene.associates(
            agent.messages.dropFirst(count).filter { message in id.map { message.topic.hasSuffix("/" + $0) } ?? true }
        )
    }

    /// The agents that have advertised the context.
    var advertisers: Set<String> {
        let topics = agent.messages.map(\.topic).filter { $0.hasPrefix("coaty/3/-/ADV:IoContext/") }
        return Set(topics.compactMap { $0.split(separator: "/").last.map(String.init) })
    }
}
