import Foundation
import TestSupport
import Testing

@testable import Base
@testable import CoatyGateway
@testable import Edge

@Suite(.exclusive) struct SettingsTests {
    private func withFile<Result>(_ text: String, _ body: (String) throws -> Result) throws -> Result {
        let url = FileManager.default.temporaryDirectory.appending(path: "settings-\(UUID().uuidString).yaml")
        try text.write(to: url, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: url) }
        return try body(url.path)
    }

    @Test func drainDelayBeyondTheStopTimeoutIsRefused() throws {
        #expect(throws: conflict("--limit drain-delay")) {
            try GatewaySettings(flags: ["drain-delay": "3"], environment: [:], file: nil)
        }
        #expect(throws: conflict("COATY_GATEWAY_DRAIN_DELAY")) {
            let environment = ["COATY_GATEWAY_DRAIN_DELAY": "20", "COATY_GATEWAY_STOP_TIMEOUT": "27"]
            return try GatewaySettings(flags: [:], environment: environment, file: nil)
        }
    }

    private func conflict(_ place: String) -> InvalidConfiguration {
        InvalidConfiguration(description: "\(place): stop-timeout must be at least 8 seconds longer than drain-delay")
    }

    @Test func flagsOverrideEnvironmentFileAndDefaults() throws {
        try withFile("host: file\nport: 1\nnamespace: file\n# comment\nname: 'file'\n") { path in
            let settings = try GatewaySettings(
                flags: ["host": "flag"],
                environment: ["COATY_GATEWAY_HOST": "env", "COATY_GATEWAY_PORT": "2"],
                file: path
            )
            #expect(settings.host == "flag")
            #expect(settings.port == 2)
            #expect(settings.namespace == "file")
            #expect(settings.log == LogSettings())
        }
    }

    @Test(
        arguments: [
            ("host: h\nhots: h\n", "hots", 2),
            ("port: 70000\n", "port", 1),
            ("\nport: [1]\n", "port", 2),
            ("a: [", ".yaml:2: ", nil),
            ("- host\n", "mapping", nil),
        ] as [(String, String, Int?)]
    )
    func fileErrorsNameTheirLocation(_ text: String, _ word: String, _ line: Int?) throws {
        try withFile(text) { path in
            let error = #expect(throws: InvalidConfiguration.self) {
                try GatewaySettings(flags: [:], environment: [:], file: path)
            }
            let description = try #require(error?.description)
            #expect(description.hasPrefix(path))
            #expect(description.contains(word))
            if let line { #expect(description.contains(":\(line):")) }
        }
    }

    @Test(arguments: [
        ["port": "x"], ["port": "-1"], ["namespace": "a/b"], ["namespace": ""], ["broker": "http://h"],
        ["broker": "mqtt://"], ["broker": "mqtt://h:0"], ["broker": "mqtt://h/path"], ["log-level": "loud"],
        ["embedded-broker-listen": "1883"], ["state-directory": ""], ["maximum-io-nodes": "-1"],
        ["maximum-outbox-bytes": "0"],
        ["maximum-timeout": "0"],
        ["broker": "mqtt://h", "broker-ca-file": "x"],
        ["broker": "mqtts://h", "broker-key-file": "x"],
        ["broker-discovery": "yes"], ["broker-discovery": "true", "broker": "mqtt://h"],
        ["broker-discovery": "true", "broker-ca-file": "x"], ["broker-discovery-tls": "true"],
        ["broker-user": "u"], ["broker-password-file": "/dev/null", "broker": "mqtt://h"],
        ["broker-user": "u", "broker": "mqtt://other@h"], ["broker-user": "", "broker": "mqtt://h"],
        ["broker-user": "u", "broker-password-file": "/nowhere", "broker": "mqtt://h"],
        ["embedded-broker-announcement": "true"],
        ["embedded-broker-announcement": "true", "embedded-broker-listen": "localhost:1883"],
        ["embedded-broker-announcement": "true", "embedded-broker-listen": "broker.example:1883"],
        ["embedded-broker-announcement": "true", "embedded-broker-listen": "0.0.0.0:1883", "broker": "mqtt://h"],
        ["embedded-broker-announcement": "true", "embedded-broker-listen": "0.0.0.0:1883", "broker-discovery": "true"],
    ])
    func refusesInvalidValuesAndCombinations(_ flags: [String: String]) {
        #expect(throws: InvalidConfiguration.self) {
            try GatewaySettings(flags: flags, environment: [:], file: nil)
        }
    }

    @Test(arguments: [
        ["broker-discovery": "true"], ["broker-discovery": "false", "broker": "mqtt://h"],
        ["broker-discovery": "true", "broker-discovery-tls": "true", "broker-ca-file": "/dev/null"],
        ["broker-user": "u", "broker-password-file": "/dev/null", "broker": "mqtts://h"],
        ["broker-user": "u", "broker-discovery": "true", "broker-discovery-tls": "true"],
        ["embedded-broker-announcement": "true", "embedded-broker-listen": "[::]:1883"],
    ])
    func acceptsValidCombinations(_ flags: [String: String]) throws {
        let settings = try GatewaySettings(flags: flags, environment: [:], file: nil)
        #expect(settings.broker?.shouldTryMDNSDiscovery ?? false == settings.isBrokerDiscovered)
    }

    @Test func doesNotRepeatSecrets() throws {
        let error = #expect(throws: InvalidConfiguration.self) {
            try GatewaySettings(flags: ["broker": "mqtt://user:secret@h:x"], environment: [:], file: nil)
        }
        #expect(error?.description.contains("secret") == false)
    }

    @Test func stateDirectoryAndNodeLimitAreSettings() throws {
        let none = try GatewaySettings(flags: [:], environment: [:], file: nil)
        #expect(none.stateDirectory == nil && none.limits[.ioNodes].total == 100 && none.routing.contexts.isEmpty)
        let some = try GatewaySettings(
            flags: ["maximum-io-nodes": "7"],
            environment: ["COATY_GATEWAY_STATE_DIRECTORY": "/state"],
            file: nil
        )
        #expect(some.stateDirectory == "/state" && some.limits[.ioNodes].total == 7)
    }

    @Test func descriptorsAreDividedAmongConnections() throws {
        let few = try DescriptorLimit(descriptors: 1024, agents: 10)
        #expect(2 * few.connections + few.undecided + DescriptorLimit.reserve + 50 <= 1024)
        #expect(few.connections > 280)
        let many = try DescriptorLimit(descriptors: 1 << 20, agents: 200)
        #expect(2 * many.connections + many.undecided + DescriptorLimit.reserve + 1000 <= 1 << 20)
        #expect(many.connections > 500_000)
        let minimum = DescriptorLimit.minimum(agents: 200)
        #expect(try DescriptorLimit(descriptors: minimum, agents: 200).connections == 128)
        let error = try #require(throws: DescriptorLimit.TooFew.self) {
            try DescriptorLimit(descriptors: minimum - 1, agents: 200)
        }
        #expect("\(error)".contains("is \(minimum - 1) (ulimit -Hn), and at least \(minimum) are needed"))
    }

    @Test(.needs(.mosquitto)) func aClosedStandardOutputDoesNotEndTheGateway() throws {
        let process = try GatewayProcess(
            unready: ["--port", "0", "--embedded-broker-listen", "127.0.0.1:0"],
            output: "/dev/full"
        )
        try waitUntil("the log has the line") { process.log.contains("ready on http://") }
        #expect(!process.hasEnded)
        #expect(try process.stop() == 0)
    }

    @Test func helpListsAll() throws {
        let process = try GatewayProcess(unready: ["help", "serve"])
        #expect(try process.waitForEnd() == 0)
        // A token in a command line would be visible to other users of the machine.
        #expect(process.output.contains("COATY_GATEWAY_TOKEN"))
        // In the same groups and the same order as in the documents.
        let listed = GatewaySettings.groups.flatMap { group in
            ["\(group.title.uppercased()):"]
                + group.settings.filter { $0.name != "token" }.map { "  --\($0.name) <\($0.placeholder)>" }
        }
        var rest = process.output[...]
        for entry in listed {
            guard let range = rest.range(of: "\n" + entry) else {
                Issue.record("not listed, or not in this order: \(entry)")
                continue
            }
            rest = rest[range.upperBound...]
        }
        let flags = process.output.components(separatedBy: "\n  --").dropFirst().map { $0.prefix { $0 != " " } }
        #expect(
            Set(flags).symmetricDifference(GatewaySettings.settings.map { Substring($0.name) })
                == ["config", "limit", "token", "version"]
        )
        let limits = try GatewayProcess(unready: ["help", "limits"])
        #expect(try limits.waitForEnd() == 0)
        for bound in Limits.bounds { #expect(limits.output.contains("\n\(bound.name) <\(bound.unit.rawValue)>\n")) }
    }

    @Test func documentListsAllSettings() throws {
        for group in GatewaySettings.groups {
            try GeneratedTable(
                document: "docs/configuration.md",
                section: "settings: \(group.title)",
                head: ["setting", "reload", "what (default)"],
                rows: group.settings.map { setting in
                    let help = setting.help.replacing("|", with: "\\|")
                    return ["`\(setting.name)`", setting.isReloadable ? "yes" : "", help]
                }
            ).check()
        }
    }

    @Test(arguments: ["--limit=maximum-io-nodes=x", "--port=x", "--tls-client-certificates=x", "--slow-request=x"])
    func aWrongValueIsRefusedWithItsFlag(_ flag: String) throws {
        let process = try GatewayProcess(unready: [flag])
        #expect(try process.waitForEnd() != 0)
        let name = flag.dropLast(2).replacing("--limit=", with: "--limit ")
        #expect(process.log.contains("\(name): must be"), "\(process.log)")
    }

    @Test(arguments: [
        (["--maximum-io-nodes", "7"], "--maximum-io-nodes is now --limit maximum-io-nodes=…"),
        (["serve", "--outbox-bytes=7"], "--outbox-bytes is now --limit maximum-outbox-bytes=…"),
        (["--limit", "maximum-io-nodes"], "--limit maximum-io-nodes: must be name=value"),
        (["--limit", "maximum-io-node=7"], "--limit maximum-io-node: unknown limit; did you mean maximum-io-nodes?"),
        (["--limit", "resume-memory=7"], "--limit resume-memory: unknown limit; did you mean maximum-replay-memory?"),
        (["--limit", "x=7"], "--limit x: unknown limit; coaty-gateway help limits lists all"),
    ])
    func wrongNamesOfLimitsAreRefused(_ arguments: [String], _ reason: String) throws {
        let process = try GatewayProcess(unready: arguments)
        #expect(try process.waitForEnd() != 0)
        #expect(process.log.contains(reason), "\(process.log)")
    }

    @Test(arguments: [
        ("maximum-io-nodes: 7\n", ":1: maximum-io-nodes is a limit: write maximum-io-nodes below limits"),
        ("host: h\nresume-memory: 7\n", ":2: resume-memory is no setting: write maximum-replay-memory below limits"),
        ("limits:\n  outbox-bytes: 7\n", ":2: outbox-bytes is called maximum-outbox-bytes"),
        ("limits:\n  maximum-io-node: 7\n", ":2: unknown key \"maximum-io-node\"; did you mean maximum-io-nodes?"),
        ("limits: {host: h}\n", ":1: host is no limit: write it at the top level"),
        ("maximum-io-node: 7\n", ":1: maximum-io-node is no setting: write maximum-io-nodes below limits"),
        ("limits: 7\n", ":1: limits: must be a mapping of names to values"),
        ("limits: {maximum-io-nodes: x}\n", ":1: maximum-io-nodes: must be a whole number"),
    ])
    func wrongLimitsInTheFileAreRefused(_ text: String, _ reason: String) throws {
        try withFile(text) { path in
            let error = #expect(throws: InvalidConfiguration.self) {
                try GatewaySettings(flags: [:], environment: [:], file: path)
            }
            #expect(error?.description.hasPrefix(path + reason) == true, "\(error?.description ?? "")")
        }
    }

    @Test func limitsOfTheFileAreReplacedByTheEnvironmentAndFlags() throws {
        try withFile("limits:\n  maximum-io-nodes: 7\n  maximum-streams: 7\n  maximum-feeds: 7\n") { path in
            let settings = try GatewaySettings(
                flags: GatewaySettings.limitFlags(["maximum-io-nodes=8", "maximum-io-nodes=9"]),
                environment: ["COATY_GATEWAY_MAXIMUM_IO_NODES": "10", "COATY_GATEWAY_MAXIMUM_FEEDS": "10"],
                file: path
            )
            #expect(settings.limits[.ioNodes].total == 9)
            #expect(settings.limits[.feeds].total == 10)
            #expect(settings.limits.streams == 7)
        }
        let former = #expect(throws: InvalidConfiguration.self) {
            try GatewaySettings(flags: [:], environment: ["COATY_GATEWAY_RESUME_MEMORY": "7"], file: nil)
        }
        #expect(former?.description.contains("did you mean COATY_GATEWAY_MAXIMUM_REPLAY_MEMORY?") == true)
    }

    @Test func aWrongFlagEndsTheGatewayWithAReason() throws {
        let taken = try BrokerProcess()
        defer { taken.stop() }
        let second = try GatewayProcess(unready: ["--port", "\(taken.port)", "--embedded-broker-listen", "127.0.0.1:0"])
        #expect(try second.waitForEnd() == 1)
        #expect(second.log.contains("cannot listen on 127.0.0.1:\(taken.port)"))
    }
}
