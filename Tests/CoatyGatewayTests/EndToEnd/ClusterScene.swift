import Foundation
import TestSupport
import Testing

/// Gateways with the same `cluster-key-file` at one broker, and another client of the broker that receives all events.
final class ClusterScene {
    let broker: BrokerProcess
    let agent: MQTTTestClient
    private let directory: String
    private let headers: [(String, String)]
    private(set) var gateways: [GatewayProcess] = []

    /// Starts the processes, and waits until each gateway sees the others.
    ///
    /// - Parameters:
    ///   - arguments: flags of all gateways.
    ///   - headers: the header fields of requests for the status.
    init(_ count: Int = 2, _ arguments: [String] = [], headers: [(String, String)] = []) throws {
        self.headers = headers
        broker = try BrokerProcess()
        agent = try MQTTTestClient(port: broker.port)
        try agent.subscribe("coaty/#")
        let folder = FileManager.default.temporaryDirectory.appending(path: "cluster-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        directory = folder.path
        for _ in 0..<count { try start(arguments) }
        try waitUntilComplete()
    }

    deinit {
        broker.stop()
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Starts one more gateway.
    ///
    /// - Parameter secret: another secret than that of the cluster.
    @discardableResult
    func start(_ arguments: [String] = [], secret: String = "the secret of the gateways in this test")
        throws -> GatewayProcess
    {
        let file = directory + "/key-\(secret.hashValue)"
        try secret.write(toFile: file, atomically: true, encoding: .utf8)
        let gateway = try GatewayProcess(
            ["--broker", "mqtt://127.0.0.1:\(broker.port)", "--cluster-key-file", file] + arguments
        )
        gateways.append(gateway)
        return gateway
    }

    /// Ends a gateway without a farewell, and removes it from ``gateways``.
    func kill(_ gateway: GatewayProcess) {
        gateway.signal(SIGKILL)
        gateways.removeAll { $0 === gateway }
    }

    /// Waits until each gateway is ready and sees all others.
    func waitUntilComplete() throws {
        for gateway in gateways {
            try gateway.untilReady()
            try waitUntil("the gateway sees the others") {
                try gateway.cluster(headers).values.count { $0 == "live" } == gateways.count - 1
            }
        }
    }
}

extension GatewayProcess {
    /// The states of the other gateways by the ids of their identities.
    func cluster(_ headers: [(String, String)] = []) throws -> [String: String] {
        let cluster = try request("GET", "/v1/status", headers: headers).json?["cluster"] as? [String: Any]
        let gateways = cluster?["gateways"] as? [[String: Any]] ?? []
        return Dictionary(
            gateways.map { ($0["identity"] as? String ?? "", $0["state"] as? String ?? "") },
            uniquingKeysWith: { $1 }
        )
    }
}
