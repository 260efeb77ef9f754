import Foundation
import TestSupport
import Testing

/// Access to a gateway without configured roles, depending on its address and its broker.
@Suite(.exclusive) struct AccessModeTests {
    private static let privateBroker = ["--embedded-broker-listen", "127.0.0.1:0"]
    private static let publicPaths = ["/healthz", "/readyz", "/", "/client.js", "/openapi.yaml"]
    private static let token = "a-token-of-the-operator"

    private static func bearer(_ token: String) -> [(String, String)] { [("Authorization", "Bearer \(token)")] }

    /// Returns the token in the console link on standard output; nil if there is no link.
    private static func printedToken(_ gateway: GatewayProcess) throws -> String? {
        let lines = gateway.output.split(separator: "\n")
        guard lines.count > 1 else { return nil }
        let link = try #require(lines[1].wholeMatch(of: /console http:\/\/localhost:(\d+)\/#token=(coaty_[\w-]{43})/))
        #expect(lines.count == 2 && link.1 == "\(gateway.port)")
        return String(link.2)
    }

    private static func expectOpen(_ gateway: GatewayProcess) throws {
        let access = try gateway.request("GET", "/v1/access")
        #expect(access.status == 200 && access.json?["unrestricted"] as? Bool == true, "\(access.text)")
        #expect(try gateway.request("GET", "/v1/info").status == 200)
        #expect(try gateway.post("/v1/deadvertise", #"{"objectIds":["x"]}"#).status == 202)
        #expect(try gateway.frameClient().ask("subscribe", #""event":"deadvertise""#).op == "ok")
        #expect(try printedToken(gateway) == nil)
    }

    private static func expectClosed(_ gateway: GatewayProcess, token: String) throws {
        let connection = try RawConnection(port: gateway.port)
        for path in ["/v1/info", "/v1/status", "/v1/access", "/v1/objects", "/v1/sse/deadvertise"] {
            let refused = try connection.request("GET", path)
            #expect(refused.status == 401 && refused.problem == "unauthorized", "\(path)")
            #expect(refused.headers["www-authenticate"] == "Bearer")
        }
        let wrong = try connection.request("GET", "/v1/info", headers: bearer(token + "x"))
        #expect(wrong.status == 401 && wrong.headers["www-authenticate"] == "Bearer")
        for (headers, query, text) in [
            ([], "", "has no token"), (bearer(token + "x"), "", "none of this gateway's"),
            ([("Authorization", "Basic dTpw")], "", "must be Bearer"), ([], "?ticket=x", "The ticket is unknown"),
        ] {
            let refused = try connection.request("GET", "/v1/sse/deadvertise\(query)", headers: headers)
            #expect(refused.status == 401 && refused.text.contains(text), "\(refused.text)")
        }
        #expect(try connection.request("GET", "/v1/info", headers: bearer(token)).status == 200)
        let access = try connection.request("GET", "/v1/access", headers: bearer(token))
        #expect(access.json?["roles"] as? [String] == ["admin"] && access.json?["unrestricted"] as? Bool == true)
        try gateway.untilReady()
        for path in publicPaths { #expect(try connection.request("GET", path).status == 200, "\(path)") }
        let socket = try WebSocketClient(port: gateway.port).shakeHands(path: "/v1/ws/deadvertise")
        #expect(socket.status == 401 && socket.headers["www-authenticate"] == "Bearer")
    }

    @Test func loopbackIsOpen() throws {
        let broker = try BrokerProcess()
        for arguments in [Self.privateBroker, ["--broker", "mqtt://127.0.0.1:\(broker.port)"]] {
            let gateway = try GatewayProcess(arguments)
            try Self.expectOpen(gateway)
            #expect(!gateway.log.contains("warning"))
        }
    }

    @Test(arguments: ["0.0.0.0", "::"])
    func otherAddressesAreOpenWithAPrivateBroker(_ host: String) throws {
        let gateway = try GatewayProcess(["--host", host] + Self.privateBroker)
        try Self.expectOpen(gateway)
        try gateway.untilLogged(
            /warning.*open access: every client that reaches \S+ may use the embedded broker/,
            "the warning"
        )
    }

    @Test func sharedBrokerRequiresAToken() throws {
        let broker = try BrokerProcess()
        for arguments in [
            ["--host", "0.0.0.0", "--broker", "mqtt://127.0.0.1:\(broker.port)"],
            ["--host", "::", "--broker", "mqtt://127.0.0.1:\(broker.port)"],
            ["--host", "0.0.0.0", "--embedded-broker-listen", "0.0.0.0:0"],
        ] {
            let gateway = try GatewayProcess(arguments)
            let token = try #require(try Self.printedToken(gateway), "\(gateway.output)")
            try Self.expectClosed(gateway, token: token)
            #expect(!gateway.log.contains(token))
            // The token stays valid, and is printed only once.
            gateway.signal(SIGHUP)
            try waitUntil("the gateway has reloaded") { gateway.log.contains(": configuration reloaded") }
            try Self.expectClosed(gateway, token: token)
            #expect(try Self.printedToken(gateway) == token)
        }
    }

    @Test func eachStartGeneratesANewToken() throws {
        let arguments = ["--host", "0.0.0.0", "--embedded-broker-listen", "0.0.0.0:0"]
        let tokens = try (0..<2).map { _ in try Self.printedToken(GatewayProcess(arguments)) }
        #expect(tokens[0] != nil && tokens[0] != tokens[1])
    }

    @Test func configuredTokenIsRequiredOnEveryAddress() throws {
        let broker = try BrokerProcess()
        for arguments in [
            Self.privateBroker, ["--host", "0.0.0.0"] + Self.privateBroker,
            ["--host", "0.0.0.0", "--broker", "mqtt://127.0.0.1:\(broker.port)"],
        ] {
            let gateway = try GatewayProcess(arguments, environment: ["COATY_GATEWAY_TOKEN": Self.token])
            try Self.expectClosed(gateway, token: Self.token)
            #expect(try Self.printedToken(gateway) == nil)
            #expect(!gateway.log.contains(Self.token))
        }
    }

    @Test func accessCanBeOpenEverywhere() throws {
        let broker = try BrokerProcess()
        let gateway = try GatewayProcess([
            "--host", "0.0.0.0", "--broker", "mqtt://127.0.0.1:\(broker.port)", "--access", "open",
        ])
        try Self.expectOpen(gateway)
        try gateway.untilLogged(/warning.*every client that reaches 0\.0\.0\.0 has full access/, "the warning")
        let local = try GatewayProcess(["--access", "open"] + Self.privateBroker)
        try Self.expectOpen(local)
        #expect(!local.log.contains("warning"))
    }

    /// The configured roles apply to loopback, too. The token of the environment is valid in addition.
    @Test func configuredRolesApplyOnLoopback() throws {
        let file = AccessFile(tokens: [.init("reader", "reader")], roles: ["reader": ["{read: [info]}"]])
        let scene = try AccessScene(file)
        #expect(try scene.get("/v1/info", as: nil).status == 401)
        #expect(try scene.get("/v1/info", as: "reader").status == 200)
        #expect(try scene.get("/v1/status", as: "reader").problem == "forbidden")
        for path in Self.publicPaths { #expect(try scene.get(path, as: nil).status == 200, "\(path)") }
        let gateway = try GatewayProcess(
            ["--config", scene.path] + Self.privateBroker,
            environment: ["COATY_GATEWAY_TOKEN": Self.token]
        )
        try Self.expectClosed(gateway, token: Self.token)
        #expect(try gateway.request("GET", "/v1/info", headers: AccessScene.headers("reader")).status == 200)
    }

    private struct BadSettings {
        var arguments: [String] = []
        var token: String?
        var file: String?
        /// `%f` stands for the file's path.
        let reason: String
    }

    @Test func unusableSettingsAreRefusedWithTheirLocation() throws {
        let weak = "must be at least 16 visible ASCII characters"
        let roles = AccessFile(tokens: [.init("reader", "reader")], roles: ["reader": ["{read: [info]}"]]).yaml
        let exclusion = "access: open excludes tokens and roles"
        let cases = [
            BadSettings(token: "a-short-secret1", reason: "COATY_GATEWAY_TOKEN: \(weak)"),
            BadSettings(token: "long enough, but spaced", reason: "COATY_GATEWAY_TOKEN: \(weak)"),
            BadSettings(token: "", reason: "COATY_GATEWAY_TOKEN: \(weak)"),
            BadSettings(file: "host: 127.0.0.1\ntoken: weak-secret\n", reason: "%f:2: token: \(weak)"),
            BadSettings(file: "access: closed\n", reason: "%f:1: access: must be open"),
            BadSettings(arguments: ["--access", "yes"], reason: "--access: must be open"),
            BadSettings(arguments: ["--access", "open"], token: Self.token, reason: exclusion),
            BadSettings(arguments: ["--access", "open"], file: roles, reason: exclusion),
            BadSettings(file: "access: open\ntoken: \(Self.token)\n", reason: exclusion),
            BadSettings(arguments: ["--token", Self.token], reason: "--token"),
            BadSettings(file: roles + "host: \"\"\n", reason: "%f:7: host:"),
            BadSettings(file: roles.replacing("read: [info]", with: "read: [infos]"), reason: "%f:6: access/roles/"),
            BadSettings(
                file: roles.replacing("roles: [reader]", with: "roles: [rider]"),
                reason: "%f:3: access/tokens/"
            ),
            BadSettings(file: "# empty\naccess: {}\n", reason: "%f:2: access"),
        ]
        for bad in cases {
            let path = FileManager.default.temporaryDirectory.appending(path: "bad-\(UUID().uuidString).yaml").path
            defer { try? FileManager.default.removeItem(atPath: path) }
            try bad.file?.write(toFile: path, atomically: false, encoding: .utf8)
            let gateway = try GatewayProcess(
                unready: ["--port", "0"] + Self.privateBroker + bad.arguments
                    + (bad.file == nil ? [] : ["--config", path]),
                environment: bad.token.map { ["COATY_GATEWAY_TOKEN": $0] } ?? [:]
            )
            #expect(try gateway.waitForEnd() != 0)
            let reason = bad.reason.replacing("%f", with: path)
            #expect(gateway.log.contains(reason), "\(reason): \(gateway.log)")
            #expect(!gateway.log.contains("secret") && !gateway.output.contains("ready"))
        }
    }
}
