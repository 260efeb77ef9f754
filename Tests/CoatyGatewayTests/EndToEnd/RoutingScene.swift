import Foundation
import TestSupport
import Testing

/// The temperature scenario of the developer guide: a broker, a gateway that routes the context, another client of the
/// broker that receives all events, and IO nodes. Nodes are leased from the gateway or advertised by the other client.
final class RoutingScene {
    static let contextId = "b61740a6-95d7-4d1a-8be5-53f3aa1e0b79"
    static let path = "/v1/routing/contexts/\(contextId)"
    static let valueType = "coaty.test.Temperature[Celsius]"
    static let foreignAgent = "0b1e6d0a-9a55-4c6c-b0a4-8d1f6f8f4a21"
    /// The ids of the guide's sources by their strategy, and of its actors by the operating state in which they are
    /// associated.
    static let ids = [
        "None": "c547e5cd-ef99-4ccd-b109-fc472fc2d421", "Sample": "2e9949f7-a8ef-435b-88a9-527c0a9414c3",
        "Throttle": "200cc37b-df20-4425-a16f-5c0b42d04dbb", "normal": "a731fc40-c0f8-486f-b5b6-b653c3cabaea",
        "emergency": "a60a74f3-3d26-446f-a358-911867544944",
    ]
    static let rule =
        #"{"name":"by state","valueType":"\#(valueType)","condition":"#
        + #"["actorNode.characteristics.isResponsibleForOperatingState",["Equals",{"property":"context.operatingState"}]]}"#

    let broker: BrokerProcess
    let agent: MQTTTestClient
    private(set) var gateway: GatewayProcess
    let folder = FileManager.default.temporaryDirectory.appending(path: "routing-\(UUID().uuidString)")
    let arguments: [String]

    init(state: Bool = false) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // JSON is YAML.
        try "{routing: {contexts: [{context: \(Self.context("normal")), rules: [\(Self.rule)]}]}}"
            .write(to: folder.appending(path: "gateway.yaml"), atomically: false, encoding: .utf8)
        broker = try BrokerProcess()
        agent = try MQTTTestClient(port: broker.port)
        try agent.subscribe("coaty/#")
        arguments =
            ["--broker", "mqtt://127.0.0.1:\(broker.port)", "--config", folder.appending(path: "gateway.yaml").path]
            + (state ? ["--state-directory", folder.appending(path: "state").path] : [])
        gateway = try GatewayProcess(arguments)
        try untilRouting()
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
        broker.stop()
    }

    /// Stops the gateway with a signal, and starts another one.
    func restart(_ signal: Int32) throws {
        try gateway.stop(signal)
        gateway = try GatewayProcess(arguments)
        try untilRouting()
    }

    private func untilRouting() throws {
        try gateway.untilReady()
    }

    // MARK: - Objects

    static func context(_ state: String, _ members: String = "") -> String {
        #"{"coreType":"IoContext","objectType":"coaty.test.TemperatureIoContext","objectId":"\#(contextId)","#
            + #""name":"TemperatureMeasurement","operatingState":"\#(state)"\#(members)}"#
    }

    /// Returns a source of the guide as JSON for registering a node.
    static func source(_ strategy: String, rate: Int? = 5000) -> String {
        #"{"name":"\#(strategy)","objectId":"\#(ids[strategy] ?? "")","valueType":"\#(valueType)","#
            + #""updateStrategy":"\#(strategy)"\#(rate.map { #","updateRate":\#($0)"# } ?? "")}"#
    }

    static func actor(_ state: String, rate: Int = 5000) -> String {
        #"{"coreType":"IoActor","objectType":"coaty.IoActor","name":"\#(state)","objectId":"\#(ids[state] ?? "")","#
            + #""valueType":"\#(valueType)","updateRate":\#(rate)}"#
    }

    // MARK: - Nodes

    /// Leases a node, and returns its id and that of its identity.
    @discardableResult
    func lease(_ members: String) throws -> (id: String, identityId: String) {
        let response = try gateway.post("/v1/io/nodes", #"{"contextName":"TemperatureMeasurement",\#(members)}"#)
        try #require(response.status == 201, "\(response.text)")
        let node = try #require(response.json?["node"] as? [String: Any])
        let identity = try #require(response.json?["identity"] as? [String: Any])
        return (try #require(node["objectId"] as? String), try #require(identity["objectId"] as? String))
    }

    @discardableResult
    func leaseSources() throws -> (id: String, identityId: String) {
        try lease(
            #""ioSources":[\#(Self.source("None", rate: nil)),\#(Self.source("Sample")),\#(Self.source("Throttle"))]"#
        )
    }

    @discardableResult
    func leaseActor(_ state: String, rate: Int = 5000) throws -> (id: String, identityId: String) {
        try lease(
            #""ioActors":[\#(Self.actor(state, rate: rate))],"#
                + #""characteristics":{"isResponsibleForOperatingState":"\#(state)"}"#
        )
    }

    /// Advertises the node of an actor as another agent.
    func advertiseActor(_ state: String) throws {
        let id = UUID().uuidString.lowercased()
        try agent.publish(
            "coaty/3/-/ADV:IoNode/\(id)",
            #"{"object":{"coreType":"IoNode","objectType":"coaty.IoNode","objectId":"\#(UUID().uuidString.lowercased())","#
                + #""name":"TemperatureMeasurement","parentObjectId":"\#(id)","ioSources":[],"#
                + #""ioActors":[\#(Self.actor(state))],"characteristics":{"isResponsibleForOperatingState":"\#(state)"}}}"#
        )
    }

    /// Leases all sources and actors of the guide, and waits until they are associated.
    func leaseAll() throws {
        try leaseSources()
        try leaseActor("normal")
        try leaseActor("emergency")
        try untilNodes(3)
        try untilAssociated(["None", "Sample", "Throttle"].map { "\($0) normal 5000" })
        try gateway.untilReceived(by: agent)
    }

    /// Waits until the router has this number of nodes, which are advertised over separate connections.
    func untilNodes(_ count: Int) throws {
        try waitUntil("the router knows \(count) nodes") { (try context()["nodes"] as? [Any])?.count == count }
    }

    func untilAssociated(_ wanted: [String]) throws {
        try waitUntil("the associations are \(wanted)") { Self.associations(try context()["associations"]) == wanted }
    }

    // MARK: - Requests

    /// Returns the body of a GET response.
    func context(_ path: String = path) throws -> [String: Any] {
        let response = try gateway.request("GET", path)
        try #require(response.status == 200, "\(response.text)")
        return try #require(response.json)
    }

    func state() throws -> String? { (try context()["context"] as? [String: Any])?["operatingState"] as? String }

    func etag(_ path: String = path) throws -> String {
        try #require(try gateway.request("GET", path).headers["etag"])
    }

    func send(
        _ method: String,
        _ body: String,
        to path: String = path,
        headers: [(String, String)] = []
    ) throws -> RawConnection.Response {
        try gateway.request(method, path, headers: [("Content-Type", "application/json")] + headers, body: body)
    }

    /// Sends a request without waiting for its response.
    func begin(
        _ method: String,
        _ body: String,
        to path: String
    ) throws -> RawConnection {
        let connection = try RawConnection(port: gateway.port)
        try connection.send(
            "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        )
        return connection
    }

    // MARK: - Received messages

    /// Returns associations by names, such as `["None normal 5000"]`, sorted.
    static func associations(_ json: Any?) -> [String] { (json as? [[String: Any]] ?? []).map(association).sorted() }

    private static func association(_ json: [String: Any]) -> String {
        let names = ["ioSourceId", "ioActorId"].map { key in
            ids.first { $0.value == json[key] as? String }?.key ?? "\(json[key] ?? "nobody")"
        }
        return (names + ((json["updateRate"] as? Int).map { ["\($0)"] } ?? [])).joined(separator: " ")
    }

    /// Returns changes of associations by names, such as `["+None normal 5000", "-None emergency"]`.
    static func changes(_ json: [String: Any]?) -> [String] {
        guard let changes = json?["associations"] as? [String: Any] else { return ["missing"] }
        return [("+", "added"), ("-", "removed"), ("~", "changed")].flatMap { sign, key in
            associations(changes[key]).map { sign + $0 }
        }
    }

    /// Returns the published Associate events in order, in the form of ``changes(_:)``.
    static func associates(_ messages: some Sequence<MQTTTestClient.Message>) -> [String] {
        messages.filter { $0.topic.hasPrefix("coaty/3/-/ASC:TemperatureMeasurement/") }.map { message in
            let json = (try? JSONSerialization.jsonObject(with: Data(message.payload))) as? [String: Any] ?? [:]
            return (json["associatingRoute"] == nil ? "-" : "+") + association(json)
        }
    }
}
