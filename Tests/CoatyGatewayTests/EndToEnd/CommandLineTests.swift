import Base
import Foundation
import TestSupport
import Testing

@testable import CoatyGateway

/// The subcommands of the binary, against a running gateway.
@Suite(.exclusive) struct CommandLineTests {
    private struct Result {
        let status: Int32
        let lines: [String]
        let errors: String
    }

    /// Runs a command until it ends.
    private func run(_ arguments: [String], environment: [String: String] = [:]) throws -> Result {
        let process = try GatewayProcess(unready: arguments, environment: environment)
        let status = try process.waitForEnd()
        return Result(
            status: status,
            lines: process.output.split(separator: "\n").map(String.init),
            errors: process.log
        )
    }

    private static func port(_ gateway: GatewayProcess) -> [String: String] {
        ["COATY_GATEWAY_PORT": "\(gateway.port)"]
    }

    private func json(_ line: String?) throws -> [String: Any] {
        let object = try JSONSerialization.jsonObject(with: Data(try #require(line).utf8))
        return try #require(object as? [String: Any])
    }

    private static let discover = #"{"coreTypes":["Identity"]}"#

    @Test func versionNamesCommitAndLibraries() throws {
        let result = try run(["--version"])
        #expect(result.status == 0)
        #expect(result.lines.first == "coaty-gateway \(GatewayVersion.text)")
        for name in ["commit ", "Swift ", "libmosquitto ", "libmicrohttpd ", "libwebsockets ", "OpenSSL ", "libcurl/"] {
            #expect(result.lines.contains { $0.hasPrefix(name) }, "\(name)")
        }
    }

    @Test func everyCommandHasHelpWithAnExample() throws {
        for command in [
            "check-config", "default-config", "healthcheck", "publish", "discover", "query", "call", "observe",
            "agents",
            "status",
        ] {
            let result = try run(["help", command])
            #expect(result.status == 0 && result.lines.contains { $0.hasPrefix("EXAMPLE") }, "\(command)")
        }
    }

    @Test func completionsAreValid() throws {
        let script = try run(["--generate-completion-script", "bash"]).lines.joined(separator: "\n")
        #expect(script.contains("healthcheck"))
        let bash = Process()
        bash.executableURL = URL(filePath: "/bin/bash")
        bash.arguments = ["-n", "-c", script]
        try bash.run()
        bash.waitUntilExit()
        #expect(bash.terminationStatus == 0)
    }

    @Test func defaultFileIsValidAndHasTheDefaults() throws {
        let text = try run(["default-config"]).lines.joined(separator: "\n")
        let file = FileManager.default.temporaryDirectory.appending(path: "default-\(UUID().uuidString).yaml")
        defer { try? FileManager.default.removeItem(at: file) }
        // As it is, and with all settings that have a default.
        for text in [text, text.replacing(/(?m)^#((?:  )?[a-z-]+: [^#\n\[ ].*|limits:)$/) { String($0.output.1) }] {
            try text.write(to: file, atomically: true, encoding: .utf8)
            let result = try run(["check-config", "--config", file.path])
            #expect(result.status == 0 && result.lines.isEmpty, "\(result.errors)")
        }
        let given = try GatewaySettings(flags: [:], environment: [:], file: file.path)
        #expect(given.given.count > 80)
        #expect(given.port == 8080 && given.namespace == "-")
        for setting in GatewaySettings.all {
            #expect(text.contains("\n#\(setting.isLimit ? "  " : "")\(setting.name):"), "\(setting.name)")
        }
    }

    @Test func deployedFileHasKnownSettings() throws {
        let root = URL(filePath: #filePath).appending(path: "../../../..").standardizedFileURL
        let file = try ConfigurationFile(path: root.appending(path: "deploy/kubernetes/gateway.yaml").path)
        #expect(file.entries["drain-delay"]?.value == "6" && file.entries["log-format"]?.value == "json")
    }

    @Test func invalidConfigurationIsRefusedWithItsPlace() throws {
        let result = try run(["check-config"], environment: ["COATY_GATEWAY_PORT": "x"])
        #expect(result.status == 64 && result.errors.contains("COATY_GATEWAY_PORT: must be a whole number"))
    }

    @Test func checkConfigLoadsTheFilesThatTheSettingsName() throws {
        let certificates = try Certificates()
        let environment = [
            "COATY_GATEWAY_TLS_CERTIFICATE_FILE": certificates.path("server.pem"),
            "COATY_GATEWAY_TLS_KEY_FILE": certificates.path("server.key"),
        ]
        let valid = try run(["check-config"], environment: environment)
        #expect(valid.status == 0, "\(valid.errors)")
        let result = try run(
            ["check-config"],
            environment: environment.merging(["COATY_GATEWAY_TLS_KEY_FILE": certificates.path("ca.pem")]) { $1 }
        )
        #expect(result.status == 64 && result.errors.contains(certificates.path("ca.pem")), "\(result.errors)")
    }

    @Test func checkConfigChecksTheStateDirectory() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "check-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (file, state) = (folder.appending(path: "file").path, folder.appending(path: "state").path)
        try Data().write(to: URL(filePath: file))
        for (path, reason) in [
            (file, "cannot be written"), (file + "/below", "cannot be made"), ("/proc", "cannot be written"),
            ("/proc/state", "cannot be made"), (folder.path + "/none/state", "cannot be made"),
        ] {
            let result = try run(["check-config"], environment: ["COATY_GATEWAY_STATE_DIRECTORY": path])
            #expect(result.status == 64, "\(path)")
            #expect(result.errors.contains("state-directory \(path) \(reason): "), "\(result.errors)")
        }
        // A directory that a start would create, and one that exists: the check leaves them as they are.
        #expect(try run(["check-config"], environment: ["COATY_GATEWAY_STATE_DIRECTORY": state]).status == 0)
        #expect(!FileManager.default.fileExists(atPath: state))
        #expect(try run(["check-config"], environment: ["COATY_GATEWAY_STATE_DIRECTORY": folder.path]).status == 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["file"])
    }

    /// Also while a gateway runs with the directory, so that a change can be checked before a reload.
    @Test func checkConfigReadsTheStateOfTheContexts() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "check-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let id = "5a9c1f6e-3b52-4d0a-8f6e-2f6f0a3c7d11"
        let configuration = folder.appending(path: "gateway.yaml").path
        try """
        routing:
          contexts:
            - context: { coreType: IoContext, objectType: coaty.IoContext, name: Room, objectId: \(id) }
        """.write(toFile: configuration, atomically: true, encoding: .utf8)
        let environment = [
            "COATY_GATEWAY_STATE_DIRECTORY": folder.path, "COATY_GATEWAY_CONFIG": configuration,
        ]
        let gateway = try GatewayProcess(
            ["--embedded-broker-listen", "127.0.0.1:0", "--config", configuration, "--state-directory", folder.path]
        )
        let valid = try run(["check-config"], environment: environment)
        #expect(valid.status == 0, "\(valid.errors)")
        #expect(try gateway.stop() == 0)
        try "coaty-gateway state 99 x\n{}".write(
            toFile: folder.appending(path: "context-\(id).state").path,
            atomically: true,
            encoding: .utf8
        )
        let newer = try run(["check-config"], environment: environment)
        #expect(newer.status == 64 && newer.errors.contains("has version 99"), "\(newer.errors)")
    }

    @Test func checkConfigChecksTheAuditLog() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "audit-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        let result = try run(["check-config"], environment: ["COATY_GATEWAY_AUDIT_LOG": file.path + "/none"])
        #expect(result.status == 64 && result.errors.contains("audit-log: \(file.path)/none: "), "\(result.errors)")
        #expect(try run(["check-config"], environment: ["COATY_GATEWAY_AUDIT_LOG": file.path]).status == 0)
        #expect(!FileManager.default.fileExists(atPath: file.path))
        try Data("{}\n".utf8).write(to: file)
        #expect(try run(["check-config"], environment: ["COATY_GATEWAY_AUDIT_LOG": file.path]).status == 0)
        #expect(try Data(contentsOf: file) == Data("{}\n".utf8))
    }

    /// The usage of a command does not help with an error in a file, a variable or a value.
    @Test(arguments: [
        ["check-config"], ["serve"], [], ["access", "explain", "--as", "anonymous", "{}"],
    ])
    func errorsInFilesArePrintedWithoutUsage(command: [String]) throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "wrong-\(UUID().uuidString).yaml")
        defer { try? FileManager.default.removeItem(at: file) }
        try "nmespace: x\n".write(to: file, atomically: true, encoding: .utf8)
        let result = try run(command + ["--config", file.path])
        #expect(result.status == 64 && result.lines.isEmpty)
        let line = "coaty-gateway: \(file.path):1: unknown key \"nmespace\"; did you mean namespace?"
        #expect(result.errors.hasPrefix(line), "\(result.errors)")
        #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
    }

    @Test(arguments: [
        (["statu"], "the command statu is unknown; did you mean status?"),
        (["check-confi", "--config", "x"], "the command check-confi is unknown; did you mean check-config?"),
        (["observ", "advertise"], "the command observ is unknown; did you mean observe?"),
        (["help", "serv"], "the command serv is unknown; did you mean serve?"),
        (["token", "creat"], "the command creat is unknown; did you mean create?"),
        (["nonsense"], "the command nonsense is unknown. Allowed: access, agents, "),
    ])
    func unknownCommandsAreRefusedWithASuggestion(arguments: [String], text: String) throws {
        let result = try run(arguments)
        #expect(result.status == 64 && result.errors.contains(text), "\(result.errors)")
        #expect(!result.errors.contains("Usage"))
    }

    @Test(arguments: [
        ["publish", "{}"], ["discover", "{}"], ["query", "{}"], ["call", "x"], ["observe", "advertise"], ["agents"],
        ["status"],
    ])
    func commandsThatFindNoGatewayNameTheFlagOfItsAddress(command: [String]) throws {
        for address in ["http://127.0.0.1:1", "http://none.invalid"] {
            let result = try run(command + ["--url", address])
            #expect(result.status == 69 && result.errors.hasPrefix("coaty-gateway: \(address)/v1/"), "\(result.errors)")
            #expect(result.errors.hasSuffix("; if the gateway has another address, use --url\n"), "\(result.errors)")
        }
    }

    @Test func healthcheckFindsTheGatewayByItsSettings() throws {
        let gateway = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0"])
        #expect(try run(["healthcheck"], environment: Self.port(gateway)).status == 0)
        #expect(
            try run(["healthcheck", "--ready"], environment: Self.port(gateway)).status == 0
        )
        #expect(try gateway.stop() == 0)
        let result = try run(["healthcheck"], environment: Self.port(gateway))
        #expect(result.status == 1 && result.errors.contains("Couldn't connect to server"))
        #expect(try run(["healthcheck"], environment: ["COATY_GATEWAY_PORT": "0"]).status == 1)
    }

    /// The prober of a container knows only the environment, not the arguments of the gateway.
    @Test func healthcheckNeedsOnlyTheSettingsOfTheAddress() throws {
        let gateway = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0"])
        let port = "\(gateway.port)"
        for (name, value) in [
            ("COATY_GATEWAY_BROKER_USER", "u"), ("COATY_GATEWAY_CONFIG", "/none"), ("http_proxy", "http://127.0.0.1:1"),
        ] {
            let result = try run(["healthcheck"], environment: ["COATY_GATEWAY_PORT": port, name: value])
            #expect(result.status == 0, "\(name): \(result.errors)")
        }
        let environment = Self.port(gateway).merging(["COATY_GATEWAY_PROXY_PROTOCOL": "true"]) { $1 }
        let result = try run(["healthcheck"], environment: environment)
        #expect(result.status == 1 && result.errors.contains("COATY_GATEWAY_PROXY_PROTOCOL: probes need plain-port"))
    }

    @Test func healthcheckWithoutItsBrokerIsHealthyButNotReady() throws {
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:1", "--access", "open"])
        #expect(try run(["healthcheck"], environment: Self.port(gateway)).status == 0)
        #expect(try run(["healthcheck", "--ready"], environment: Self.port(gateway)).status == 1)
    }

    @Test func requestsPrintResponsesAsLines() throws {
        let gateway = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0", "--demo", "true"])
        let url = ["--url", "http://127.0.0.1:\(gateway.port)/"]
        let found = try run(["discover", Self.discover, "--limit", "2"] + url)
        #expect(found.status == 0 && found.lines.count == 2)
        #expect(try json(found.lines.first)["event"] as? String == "resolve")
        let none = try run(["discover", #"{"objectTypes":["none"]}"#, "--timeout", "100"] + url)
        #expect(none.status == 3 && none.lines.isEmpty && none.errors == "coaty-gateway: no agent responded in time\n")
        let wrong = try run(["query", #"{"objectTypes":1}"#] + url)
        #expect(wrong.status == 1 && wrong.errors.contains("/objectTypes must be an array"))
        let until = try run(["discover", Self.discover, "--limit", "0", "--until", #"["name",["Exists"]]"#] + url)
        #expect(until.status == 0 && until.lines.count >= 1)
        // The demo agent's operation.
        let called = try run(["call", "com.example.demo.switchLight", #"{"parameters":{"on":true}}"#] + url)
        let refused = try run(["call", "com.example.demo.switchLight", #"{"parameters":{}}"#] + url)
        #expect(called.status == 0, "\(called.errors)")
        #expect(refused.status == 1 && refused.errors.contains("the agent responded with an error"), "\(refused)")
        let agents = try run(["agents", "--online"] + url)
        #expect(agents.status == 0 && agents.lines.count == 2)
        #expect(try json(try run(["status"] + url).lines.first)["version"] as? String == GatewayVersion.text)
    }

    @Test func publicationsHaveResultsInTheirOrder() throws {
        let gateway = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0"])
        let url = ["--url", "http://127.0.0.1:\(gateway.port)"]
        let raw = #"{"event":"raw","topic":"a/b",\#n"data":{"encoding":"utf8","value":"x"}}"#
        let result = try run(["publish", raw, #"{"event":"x"}"#] + url)
        #expect(result.status == 1 && result.lines.count == 2)
        #expect(try json(result.lines.first)["status"] as? Int == 202)
        #expect(try json(result.lines.last)["pointer"] as? String == "/event")
        #expect(result.errors == "coaty-gateway: 1 of 2 publications were refused\n")
        #expect(try run(["publish", raw.replacing("\n", with: "\r\n")] + url).lines.count == 1)
        #expect(try run(["publish", ""] + url).status == 64)
        let none = try run(["publish"] + url)
        #expect(none.status == 1 && none.errors.contains("no publication on standard input"), "\(none)")
    }

    @Test func tokenIsReadFromTheEnvironment() throws {
        let token = "a-token-of-the-command-line"
        let gateway = try GatewayProcess(
            ["--embedded-broker-listen", "127.0.0.1:0"],
            environment: ["COATY_GATEWAY_TOKEN": token]
        )
        let status = ["status", "--url", "http://127.0.0.1:\(gateway.port)"]
        let refused = try run(status)
        #expect(refused.status == 1 && refused.errors.contains("(401)"))
        #expect(try run(status, environment: ["COATY_GATEWAY_TOKEN": token]).status == 0)
        #expect(try run(status + ["--token", token]).status == 0)
        #expect(try run(status + ["--token", "a\r\nX: y"]).status == 64)
    }

    @Test func responsesOfOthersAreNotThoseOfAGateway() throws {
        let gateway = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0"])
        let url = "http://127.0.0.1:\(gateway.port)"
        // The console's page has the status 200.
        for arguments in [["status", "--url", url + "/?"], ["status", "--url", "http://u:p@127.0.0.1"]] {
            let result = try run(arguments)
            #expect(result.status == 64 && result.lines.isEmpty, "\(result)")
        }
        let result = try run(["observe", "advertise", "--url", url + "/console"])
        #expect(result.status != 0 && result.lines.isEmpty, "\(result)")
    }

    @Test func unreachableGatewaysHaveTheirOwnExitCode() throws {
        let result = try run(["observe", "advertise", "--url", "http://127.0.0.1:1"])
        #expect(result.status == 69 && result.errors.contains("Couldn't connect to server"))
    }

    @Test func observeResumesAfterARestart() throws {
        let broker = try BrokerProcess()
        let arguments = ["--broker", "mqtt://127.0.0.1:\(broker.port)", "--access", "open"]
        let gateway = try GatewayProcess(arguments)
        let (port, url) = (gateway.port, ["--url", "http://127.0.0.1:\(gateway.port)"])
        let observer = try GatewayProcess(unready: ["observe", "raw", "topic=greenhouse/door", "--count", "3"] + url)
        let open = #"{"event":"raw","topic":"greenhouse/door","data":{"encoding":"utf8","value":"open"}}"#
        try waitUntil("the observer has the first event") {
            _ = try run(["publish", open] + url)
            return observer.output.contains(#""op":"event""#)
        }
        #expect(try gateway.stop() == 0)
        let next = try GatewayProcess(arguments, port: port)
        try waitUntil("the observer has ended") {
            _ = try run(["publish", open] + url)
            return observer.hasEnded
        }
        #expect(try observer.waitForEnd() == 0)
        let frames = try observer.output.split(separator: "\n").map { try json(String($0)) }
        #expect(frames.count { $0["op"] as? String == "event" } == 3)
        // The new gateway has no events of before.
        #expect(frames.contains { $0["op"] as? String == "gap" })
        try observer.untilLogged("connecting again")
        #expect(!next.hasEnded)
    }

    @Test func observeReportsAGapBeforeTheFirstEvent() throws {
        let broker = try BrokerProcess()
        let arguments = ["--broker", "mqtt://127.0.0.1:\(broker.port)", "--access", "open"]
        let gateway = try GatewayProcess(arguments)
        let url = ["--url", "http://127.0.0.1:\(gateway.port)"]
        let observer = try GatewayProcess(unready: ["observe", "raw", "topic=greenhouse/door"] + url)
        try waitUntil("the observer has subscribed") {
            try run(["status"] + url).lines.first?.contains(#""subscriptions":1"#) == true
        }
        #expect(try gateway.stop() == 0)
        let next = try GatewayProcess(arguments, port: gateway.port)
        try waitUntil("the observer has the gap") { observer.output.contains(#""op":"gap""#) }
        #expect(!next.hasEnded)
    }

    @Test func observeReportsRefusedSubscriptions() throws {
        let gateway = try GatewayProcess(["--embedded-broker-listen", "127.0.0.1:0"])
        let url = ["--url", "http://127.0.0.1:\(gateway.port)"]
        let result = try run(["observe", "nonsense"] + url)
        #expect(result.status == 1 && result.errors.contains("There is no event nonsense"))
        #expect(try run(["observe", "advertise", "coreType"] + url).status == 64)
    }
}
