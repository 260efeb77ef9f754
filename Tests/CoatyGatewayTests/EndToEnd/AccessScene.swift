import Foundation
import TestSupport
import Testing

@testable import Access

/// The `access` mapping of a configuration file.
struct AccessFile {
    struct Token {
        let name: String
        var roles: [String]
        /// A JSON object.
        var attributes = "{}"
        /// The client may present any of these.
        var secrets: [String] = []

        init(_ name: String, _ roles: String..., site: String? = nil, secrets: [String]? = nil) {
            self.name = name
            self.roles = roles
            if let site { attributes = #"{"site":"\#(site)"}"# }
            self.secrets = secrets ?? [AccessFile.secret(of: name)]
        }
    }

    var tokens: [Token]
    /// The entries of `certificates`, each in one line of YAML.
    var certificates: [String] = []
    var anonymous: [String] = []
    /// The mapping `jwt`, in one line of YAML.
    var jwt: String?
    /// The members of `limits`, each in one line of YAML.
    var limits: [String] = []
    /// The grants of each role, each in one line of YAML.
    var roles: [String: [String]] = [:]

    /// A condition that is true for objects of the principal's site.
    static let ownSite = #"["object.site", ["Equals", {property: "principal.site"}]]"#

    /// Returns the secret of a token without explicit secrets.
    static func secret(of name: String) -> String { "coaty_secret-of-\(name)-0123456789" }

    /// The mapping as YAML, with one grant in each line, so that an error's line number identifies the grant.
    var yaml: String {
        var lines = ["access:", "  tokens:"]
        for token in tokens {
            let digests = token.secrets.map { secret in
                "\"" + TokenDigest(of: secret).bytes.map { String(format: "%02x", $0) }.joined() + "\""
            }
            lines.append(
                "    - {name: \"\(token.name)\", sha256: [\(digests.joined(separator: ", "))], "
                    + "roles: [\(token.roles.joined(separator: ", "))], attributes: \(token.attributes)}"
            )
        }
        if !certificates.isEmpty { lines.append("  certificates:") }
        lines += certificates.map { "    - \($0)" }
        if let jwt { lines.append("  jwt: \(jwt)") }
        if !anonymous.isEmpty { lines.append("  anonymous: [\(anonymous.joined(separator: ", "))]") }
        if !limits.isEmpty { lines.append("  limits:") }
        lines += limits.map { "    \($0)" }
        if !roles.isEmpty { lines.append("  roles:") }
        for (role, grants) in roles.sorted(by: { $0.key < $1.key }) {
            lines.append("    \(role):")
            lines += grants.map { "      - \($0)" }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}

/// A gateway with configured access, its broker, and another client of the broker.
final class AccessScene {
    let broker: BrokerProcess
    let agent: MQTTTestClient
    let gateway: GatewayProcess
    let folder = FileManager.default.temporaryDirectory.appending(path: "access-\(UUID().uuidString)")
    /// Number of reloads that the gateway has applied.
    private var reloads = 0
    private var refusals = 0

    /// The configuration file.
    var path: String { folder.appending(path: "gateway.yaml").path }
    /// The audit log.
    var audit: String { (try? String(contentsOfFile: folder.appending(path: "audit").path, encoding: .utf8)) ?? "" }

    /// Starts a broker, an agent and a gateway.
    ///
    /// - Parameters:
    ///   - settings: further lines of the configuration file.
    ///   - brokerSettings: further lines of the broker's configuration.
    ///   - isEncrypted: whether the arguments enable TLS.
    init(
        _ file: AccessFile,
        _ arguments: [String] = [],
        settings: String = "",
        brokerSettings: [String] = [],
        isEncrypted: Bool = false
    ) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        broker = try BrokerProcess(extraConfiguration: brokerSettings)
        agent = try MQTTTestClient(port: broker.port)
        try agent.subscribe("coaty/#")
        let path = folder.appending(path: "gateway.yaml").path
        try (file.yaml + settings).write(toFile: path, atomically: false, encoding: .utf8)
        gateway = try GatewayProcess(
            [
                "--broker", "mqtt://127.0.0.1:\(broker.port)", "--config", path, "--audit-log",
                folder.appending(path: "audit").path,
            ] + arguments
        )
        try waitUntil("the gateway is ready") {
            guard isEncrypted else { return try gateway.request("GET", "/readyz").status == 200 }
            return try TLSClient(port: gateway.port).request("GET /readyz").contains("200 OK")
        }
    }

    deinit {
        broker.stop()
        try? FileManager.default.removeItem(at: folder)
    }

    // MARK: - Clients

    /// Returns the headers of a client.
    ///
    /// - Parameter name: the client's token; nil for none.
    static func headers(_ name: String?) -> [(String, String)] {
        name.map { [("Authorization", "Bearer " + AccessFile.secret(of: $0))] } ?? []
    }

    func get(_ target: String, as name: String?) throws -> RawConnection.Response {
        try gateway.request("GET", target, headers: Self.headers(name))
    }

    func post(_ target: String, _ json: String, as name: String?) throws -> RawConnection.Response {
        try gateway.post(target, json, headers: Self.headers(name))
    }

    func delete(_ target: String, as name: String?) throws -> RawConnection.Response {
        try gateway.request("DELETE", target, headers: Self.headers(name))
    }

    func socket(_ target: String = "", as name: String?) throws -> FrameClient {
        try gateway.frameClient(target, headers: Self.headers(name))
    }

    /// Opens an event stream, and returns when its subscription is active.
    func events(_ target: String, as name: String?) throws -> EventStreamClient {
        try gateway.eventStream(target, headers: Self.headers(name))
    }

    // MARK: - Reloading

    /// Replaces the configuration file, reloads it, and returns when the new access applies.
    func reload(_ file: AccessFile) throws {
        try signal(file.yaml)
        reloads += 1
        try untilLogged(": configuration reloaded", reloads)
    }

    /// Replaces the configuration file with text that the gateway refuses.
    ///
    /// - Returns: the log line with the reason.
    func reload(bad text: String) throws -> String {
        try signal(text)
        refusals += 1
        return try untilLogged("the configuration was not reloaded", refusals)
    }

    /// Replaces the configuration file and signals the gateway, without waiting.
    func signal(_ text: String) throws {
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        gateway.signal(SIGHUP)
    }

    /// Waits until the log has this number of lines with the message, and returns the last one.
    @discardableResult
    private func untilLogged(_ message: String, _ count: Int) throws -> String {
        var lines: [Substring] = []
        try waitUntil("\(count) times in the log: \(message)") {
            // Only complete lines: if a line crosses a page of the file, its beginning may be visible before its end.
            lines = gateway.log.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
                .filter { $0.contains(message) }
            return lines.count >= count
        }
        return lines.last.map(String.init) ?? ""
    }

    // MARK: - Events

    static func id() -> String { UUID().uuidString.lowercased() }

    /// Returns an object with the attribute `site`.
    static func lamp(
        _ name: String,
        site: String?,
        id: String = id(),
        type: String = "com.example.Lamp",
        _ members: String = ""
    ) -> String {
        #"{"coreType":"CoatyObject","objectType":"\#(type)","objectId":"\#(id)","name":"\#(name)""#
            + (site.map { #","site":"\#($0)""# } ?? "") + members + "}"
    }

    /// Publishes a Coaty event in the name of an agent.
    func publish(_ event: String, _ payload: String, source: String = "agent") throws {
        let topics = event.split(separator: "/", maxSplits: 1)
        let rest = topics.count > 1 ? "/" + topics[1] : ""
        try agent.publish("coaty/3/-/\(topics[0])/\(source)\(rest)", payload)
    }

    /// Publishes an Advertise event for core type and object type in the name of an agent.
    func advertise(_ object: String, type: String = "com.example.Lamp") throws {
        for name in ["CoatyObject", ":" + type] { try publish("ADV:\(name)", #"{"object":\#(object)}"#) }
    }
}

extension FrameClient.Frame {
    /// The name of the event's object.
    var objectName: String? { object["name"] as? String }
}

extension EventStreamClient.Event {
    /// The name of the event's object.
    var objectName: String? { ((json["data"] as? [String: Any])?["object"] as? [String: Any])?["name"] as? String }
}
