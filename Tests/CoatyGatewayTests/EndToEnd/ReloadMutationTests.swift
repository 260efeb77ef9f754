import Foundation
import TestSupport
import Testing

/// Reloads of random files, compared with a gateway that is started with the same file.
@Suite(.exclusive) struct ReloadMutationTests {
    private static let admin = "secret-of-the-operator-0123456789"
    private static let authorization = [("Authorization", "Bearer " + admin)]

    /// Returns a file with every setting that a reload can change, and some that it can't.
    private static func file(_ generator: inout SeededGenerator) -> String {
        func pick(_ values: [String]) -> String { values.randomElement(using: &generator) ?? "" }
        let roles = ["viewer", "user", "viewer, user"]
        let access = AccessFile(
            tokens: [.init("alpha", pick(roles)), .init("beta", pick(roles)), .init("gamma", "limited")],
            anonymous: [pick(["viewer", "user"])],
            roles: [
                "viewer": ["{ read: [\(pick(["status", "info", "status, info"]))] }"],
                "user": ["{ observe: [channel], channels: [\"\(pick(["a", "b", "c"]))*\"] }"],
                "limited": ["{ read: [info] }"],
            ]
        )
        let rule = RoutingScene.rule.replacing("by state", with: pick(["one", "two", "three"]))
        let limits = """
              limits:
                roles:
                  limited: { requests: 1/h burst \(pick(["1", "2", "3"])) }

            """
        return access.yaml + limits + """
            log-levels: "\(pick(["requests=notice", "requests=warning", "broker=debug"]))"
            request-log: \(pick(["none", "errors", "all"]))
            slow-request: \(pick(["100", "200", "300"]))
            allowed-origins: https://\(pick(["a", "b"])).example
            allowed-hosts: \(pick(["gate", "door"])).example
            log-level: \(pick(["info", "warning", "notice"]))
            limits: {maximum-subscriptions-per-client: \(pick(["1", "2", "3"]))}
            resume-window: 50
            routing:
              contexts:
                - context: \(RoutingScene.context("normal"))
                  rules: [\(rule)]

            """
    }

    /// Changes a text in one of many ways; most results are invalid.
    private static func mutated(_ text: String, _ generator: inout SeededGenerator) -> String {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let line = Int.random(in: 0..<lines.count, using: &generator)
        switch Int.random(in: 0..<12, using: &generator) {
        case 0: lines.remove(at: line)
        case 1: lines.insert(lines[line], at: line)
        case 2: lines.swapAt(line, Int.random(in: 0..<lines.count, using: &generator))
        case 3:
            // Use another unit or another type.
            let value = ["\"x\"", "[1, 2]", "{a: b}", "1m", "-1", "true", ""].randomElement(using: &generator) ?? ""
            lines[line] = lines[line].prefix { $0 != ":" } + ": " + value
        case 4: return String(text.prefix(Int.random(in: 0..<text.count, using: &generator)))
        case 5:
            lines[line] = String(lines[line].map { "0123456789".contains($0) ? "7" : $0 })
        case 6: lines.insert("unknown-\(line): 1", at: 0)
        case 7, 8:
            lines.insert("\(["port", "name", "broker-keepalive"].randomElement(using: &generator) ?? ""): 77", at: 0)
        default: return file(&generator)
        }
        return lines.joined(separator: "\n")
    }

    private func start(_ broker: BrokerProcess, _ path: String, _ namespace: String) throws -> GatewayProcess {
        let gateway = try GatewayProcess(
            unready: [
                "--port", "0", "--broker", "mqtt://127.0.0.1:\(broker.port)", "--namespace", namespace, "--config",
                path,
            ],
            environment: ["COATY_GATEWAY_TOKEN": Self.admin]
        )
        return gateway
    }

    /// Returns everything that a client sees of settings that a reload can change, except log levels.
    private func state(_ gateway: Prober) throws -> [String] {
        var state: [String] = []
        for name in ["alpha", "beta"] {
            let access = try gateway.get("/v1/access", AccessScene.headers(name))
            state.append("\(name) \(access.status) \(access.text)")
        }
        for origin in ["a", "b"] {
            let response = try gateway.get("/v1/info", Self.authorization + [("Origin", "https://\(origin).example")])
            state.append("origin \(origin) \(response.status)")
        }
        for host in ["gate", "door"] {
            let response = try gateway.get("/v1/status", [("Host", host + ".example")])
            state.append("host \(host) \(response.status)")
        }
        let rules = try gateway.get(RoutingScene.path + "/rules", Self.authorization)
        state.append("rules \(rules.status) \(rules.text)")
        state.append("rate \(try gateway.rate(AccessScene.headers("gamma")))")
        // The request log assigns an id to each response if it logs all of them.
        let logged = try gateway.get("/v1/info", Self.authorization)
        state.append("logs all \(logged.headers["x-request-id"] != nil)")
        state.append("share \(try gateway.share(Self.authorization))")
        return state
    }

    @Test(.timeLimit(.minutes(10))) func eachOf100MutationsAppliesWholeOrChangesNothing() throws {
        var generator = SeededGenerator(seed: 1601)
        let folder = FileManager.default.temporaryDirectory.appending(path: "reload-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (path, other) = (folder.appending(path: "gateway.yaml").path, folder.appending(path: "other.yaml").path)
        func write(_ text: String, to path: String) throws {
            try text.write(toFile: path, atomically: false, encoding: .utf8)
        }
        let broker = try BrokerProcess()
        defer { broker.stop() }

        var inForce = Self.file(&generator)
        try write(inForce, to: path)
        let process = try start(broker, path, "one")
        let gateway = try Prober(process)
        var before = try state(gateway)
        #expect(!before.contains { $0.contains(" 5") } && before.last != "share 0", "\(before)")
        var (applied, refused, unsupported, badFiles) = (0, 0, 0, 0)
        for round in 0..<100 {
            let text = Self.mutated(inForce, &generator)
            try write(text, to: path)
            let infos = gateway.infos
            let answer = try gateway.post("/v1/admin/reload", Self.authorization)
            let after = try state(gateway)

            try write(text, to: other)
            let fresh = try start(broker, other, "two")
            let started = try Prober.ifStarts(fresh)
            let comment: Comment = "round \(round): \(answer.text)\n\(text)"
            if answer.status == 200 {
                applied += 1
                inForce = text
                let expected = try state(#require(started, comment))
                #expect(after == expected, comment)
            } else {
                refused += 1
                #expect(answer.status == 422 && answer.problem == "invalid-configuration", comment)
                #expect(after == before, comment)
                let detail = answer.json?["detail"] as? String ?? ""
                if started == nil {
                    badFiles += 1
                    #expect(
                        detail.contains(/gateway\.yaml:\d+:/),
                        comment
                    )
                } else {
                    unsupported += 1
                    #expect(detail.contains("reload not supported for ") || detail.contains("only a restart"), comment)
                }
                // Reloading the file in force changes nothing.
                try write(inForce, to: path)
                let again = try gateway.post("/v1/admin/reload", Self.authorization)
                #expect(again.text == #"{"changed":[]}"#, "round \(round): \(again.text)")
            }
            before = after
            // The log level follows the file in force, too.
            let isInfo = inForce.contains("log-level: info") || !inForce.contains("\nlog-level: ")
            if isInfo {
                try waitUntil("the reload is logged") { gateway.infos > infos }
            } else {
                #expect(gateway.infos == infos, comment)
            }
        }
        print(
            "100 mutations: \(applied) applied, \(refused) refused: \(badFiles) bad files, \(unsupported) need a restart"
        )
        #expect(applied >= 20 && badFiles >= 20 && unsupported >= 5)
        #expect(!process.hasEnded)
    }
}

/// A client that sends requests to a gateway on one connection.
private struct Prober {
    let process: GatewayProcess
    let port: UInt16

    init(_ process: GatewayProcess) throws {
        self.process = process
        try waitUntil("the gateway is ready") { process.output.contains("\n") || process.hasEnded }
        let line = process.output.prefix { $0 != "\n" }
        let match = try #require(line.firstMatch(of: /http:\/\/127\.0\.0\.1:(\d+)/), "\(process.log)")
        port = try #require(UInt16(match.1))
        try waitUntil("the gateway is online") { try get("/readyz", []).status == 200 }
    }

    /// Returns nil if the gateway refuses to start.
    static func ifStarts(_ process: GatewayProcess) throws -> Prober? {
        try waitUntil("it starts or not") { process.output.contains("\n") || process.hasEnded }
        return process.hasEnded ? nil : try Prober(process)
    }

    var infos: Int { process.log.components(separatedBy: ": configuration reloaded").count - 1 }

    func get(_ target: String, _ headers: [(String, String)]) throws -> RawConnection.Response {
        try RawConnection(port: port).request("GET", target, headers: headers)
    }

    func post(_ target: String, _ headers: [(String, String)]) throws -> RawConnection.Response {
        try RawConnection(port: port).request("POST", target, headers: headers)
    }

    /// Returns the request rate of a client, which a refusal contains.
    func rate(_ headers: [(String, String)]) throws -> String {
        for _ in 0..<5 {
            let answer = try get("/v1/info", headers)
            if answer.status == 429 { return answer.headers["ratelimit-policy"] ?? "" }
            if answer.status == 401 { return "no such client" }
        }
        return "none"
    }

    /// Returns how many of five subscriptions the client may open.
    func share(_ headers: [(String, String)]) throws -> Int {
        try waitUntil("earlier subscriptions are over") {
            let streams = try get("/v1/status", headers).json?["streams"] as? [String: Any]
            return streams?["subscriptions"] as? Int == 0
        }
        let client = try WebSocketClient.open(port: port, path: "/v1/ws", headers: headers)
        var count = 0
        for number in 0..<5 {
            try client.sendText(#"{"op":"subscribe","id":"\#(number)","event":"channel","channelId":"c\#(number)"}"#)
            guard case .text(let reply) = try client.receive() else { return -1 }
            if reply.hasPrefix(#"{"op":"ok""#) { count += 1 }
        }
        return count
    }
}
