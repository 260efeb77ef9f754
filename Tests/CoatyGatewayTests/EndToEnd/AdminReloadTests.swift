import Foundation
import TestSupport
import Testing

/// The answers of `POST /v1/admin/reload`.
@Suite(.exclusive) struct AdminReloadTests {
    private static let path = "/v1/admin/reload"
    private static let file = AccessFile(
        tokens: [.init("operator", "operators"), .init("reader", "readers")],
        roles: ["operators": ["{ administer: [gateway] }"], "readers": ["{ read: [status] }"]]
    )

    private func reload(_ scene: AccessScene, _ settings: String) throws -> RawConnection.Response {
        try (Self.file.yaml + settings).write(toFile: scene.path, atomically: false, encoding: .utf8)
        return try scene.post(Self.path, "", as: "operator")
    }

    @Test func refusalNamesSettingsThatNeedARestart() throws {
        let scene = try AccessScene(Self.file, settings: "resume-window: 10\n")
        let refused = try reload(
            scene,
            "resume-window: 20\nlimits: {http-threads: 3}\nname: other\nallowed-origins: https://a.example\nlog-level: debug\n"
        )
        #expect(refused.status == 422 && refused.problem == "invalid-configuration")
        #expect(
            refused.json?["detail"] as? String
                == "reload not supported for name, resume-window, http-threads: restart the gateway"
        )
        try waitUntil("logged") {
            scene.gateway.log.contains("reload not supported for name, resume-window, http-threads")
        }
        // No setting was applied, not even those that can change at runtime.
        let headers = AccessScene.headers("reader") + [("Origin", "https://a.example")]
        #expect(try scene.gateway.request("GET", "/v1/status", headers: headers).status == 403)
        #expect(!scene.gateway.log.contains(" debug "))
        // Unchanged settings that need a restart may be written differently; settings that can change at runtime are
        // applied.
        let applied = try reload(scene, "log-level: debug\nallowed-origins: https://a.example\nresume-window: 10\n")
        #expect(applied.text == #"{"changed":["allowed-origins","log-level"]}"#, "\(applied.text)")
        #expect(try scene.gateway.request("GET", "/v1/status", headers: headers).status == 200)
        // The coordinator tree logs its changes at this level.
        for path in ["/v1/admin/pause", "/v1/admin/resume"] {
            #expect(try scene.post(path, "", as: "operator").status == 200)
        }
        try waitUntil("there are debug lines") {
            scene.gateway.log.contains("debug gateway: listener: active")
        }
        #expect(try scene.post(Self.path, "", as: "operator").text == #"{"changed":[]}"#)
    }

    @Test func writtenDefaultsAreNoChange() throws {
        let scene = try AccessScene(Self.file)
        let unchanged = try reload(
            scene,
            "name: coaty-gateway\nresume-window: 60\nlimits: {http-threads: 2}\nlog-level: info\n"
        )
        #expect(unchanged.text == #"{"changed":[]}"#, "\(unchanged.text)")
    }

    @Test func namesTheLineOfAnError() throws {
        let scene = try AccessScene(Self.file)
        let line = Self.file.yaml.split(separator: "\n").count + 2
        let refused = try reload(scene, "log-level: info\nlog-levle: debug\n")
        #expect(refused.status == 422)
        let detail = "\(scene.path):\(line): unknown key \"log-levle\"; did you mean log-level?"
        #expect(refused.json?["detail"] as? String == detail)
    }

    @Test func reloadRequiresAGrant() throws {
        let scene = try AccessScene(Self.file)
        #expect(try scene.post(Self.path, "", as: "reader").status == 403)
        #expect(try scene.post(Self.path, "", as: nil).status == 401)
        #expect(!scene.gateway.log.contains("configuration reloaded"))
        // A reload also works while the gateway is paused.
        #expect(try scene.post("/v1/admin/pause", "", as: "operator").status == 200)
        #expect(try scene.post(Self.path, "", as: "operator").status == 200)
    }

    /// Lower limits do not end existing subscriptions.
    @Test func reloadChangesSharesOfConnectedClients() throws {
        let file = AccessFile(tokens: [.init("admin", "admin")])
        func setting(_ share: Int) -> String { "limits: {maximum-subscriptions-per-client: \(share)}\n" }
        let scene = try AccessScene(file, settings: setting(2))
        func reload(_ share: Int) throws {
            try (file.yaml + setting(share)).write(toFile: scene.path, atomically: false, encoding: .utf8)
            let response = try scene.post(Self.path, "", as: "admin")
            #expect(response.text == #"{"changed":["maximum-subscriptions-per-client"]}"#)
        }
        let client = try scene.socket(as: "admin")
        func subscribe(_ id: String) throws -> Int? {
            try client.ask("subscribe", id: id, #""event":"channel","channelId":"\#(id)""#).json["status"] as? Int
        }
        for id in ["a", "b"] { #expect(try subscribe(id) == nil) }
        #expect(try subscribe("c") == 429)
        try reload(3)
        #expect(try subscribe("c") == nil)
        #expect(try subscribe("d") == 429)
        try reload(1)
        #expect(try client.ask("unsubscribe", id: "c").op == "ok")
        #expect(try subscribe("d") == 429)
        try scene.publish("CHN:a", #"{"object":\#(AccessScene.lamp("one", site: nil))}"#)
        #expect(try client.next(of: "a", "event").objectName == "one")
    }

    /// Rules set over REST replace the configured ones until these change in the file; the last change also survives a
    /// restart.
    @Test func onlyChangedRulesAreReplaced() throws {
        let scene = try RoutingScene(state: true)
        let rulesPath = RoutingScene.path + "/rules"
        func rule(_ name: String) -> String { RoutingScene.rule.replacing("by state", with: name) }
        func reload(_ name: String) throws -> String {
            try "{routing: {contexts: [{context: \(RoutingScene.context("normal")), rules: [\(rule(name))]}]}}"
                .write(to: scene.folder.appending(path: "gateway.yaml"), atomically: false, encoding: .utf8)
            return try scene.gateway.request("POST", Self.path).text
        }
        func names() throws -> [String] {
            let rules = try scene.gateway.request("GET", rulesPath).json?["rules"] as? [[String: Any]]
            return try #require(rules).compactMap { $0["name"] as? String }
        }
        #expect(try scene.send("PUT", #"{"rules":[\#(rule("over REST"))]}"#, to: rulesPath).status == 200)
        #expect(try reload("by state") == #"{"changed":[]}"#)
        #expect(try names() == ["over REST"], "the configuration has not changed")
        #expect(try reload("reloaded") == #"{"changed":["routing"]}"#)
        #expect(try names() == ["reloaded"])
        try scene.restart(SIGKILL)
        #expect(try names() == ["reloaded"])
        #expect(try scene.send("PUT", #"{"rules":[\#(rule("again"))]}"#, to: rulesPath).status == 200)
        try scene.restart(SIGTERM)
        #expect(try names() == ["again"])
    }

    @Test func aContextCannotChange() throws {
        let scene = try RoutingScene()
        try "{routing: {contexts: [{context: \(RoutingScene.context("emergency")), rules: []}]}}"
            .write(to: scene.folder.appending(path: "gateway.yaml"), atomically: false, encoding: .utf8)
        let refused = try scene.gateway.request("POST", Self.path)
        #expect(refused.json?["detail"] as? String == "reload not supported for routing.contexts: restart the gateway")
        #expect(try scene.state() == "normal")
    }
}
