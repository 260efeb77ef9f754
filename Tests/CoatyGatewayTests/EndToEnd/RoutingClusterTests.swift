import Foundation
import TestSupport
import Testing

/// Gateways of a cluster that route the same context: one speaks.
@Suite(.exclusive) struct RoutingClusterTests {
    static let associations = ["None normal 5000", "Sample normal 5000"]
    private static let published = associations.map { "+" + $0 }
    private static let rulesPath = RoutingScene.path + "/rules"

    @Test func oneGatewaySpeaks() throws {
        let scene = try RoutingClusterScene()
        let (speaker, silent) = try scene.speaker()
        try scene.lease()
        try waitUntil("the pairs are associated") { try scene.associates().count == 2 }
        #expect(try scene.associates(by: speaker).sorted() == Self.published)
        #expect(try scene.advertisers == [speaker.identityId()])
        for gateway in scene.gateways {
            let context = try scene.context(gateway)
            #expect(try context["router"] as? String == speaker.identityId() && context["hosted"] as? Bool == true)
            #expect(context["otherRouters"] as? [String] == [])
            #expect(!gateway.log.contains("another agent routes this IO context too"))
        }
        let discover = #"{"coreTypes":["IoContext"]}"#
        let correlation = UUID().uuidString.lowercased()
        try scene.agent.publish("coaty/3/-/DSC/\(RoutingScene.foreignAgent)/\(correlation)", discover)
        // An update of another agent is completed once.
        let update = #"{"object":\#(RoutingScene.context("emergency"))}"#
        let second = UUID().uuidString.lowercased()
        try scene.agent.publish("coaty/3/-/UPD:IoContext/\(RoutingScene.foreignAgent)/\(second)", update)
        try waitUntil("the state is the same everywhere") {
            try scene.gateways.allSatisfy {
                (try scene.context($0)["context"] as? [String: Any])?["operatingState"] as? String == "emergency"
            }
        }
        for (event, id) in [("RSV", correlation), ("CPL", second)] {
            func isAnswer(_ topic: String) -> Bool { topic.hasPrefix("coaty/3/-/\(event)/") && topic.hasSuffix(id) }
            try scene.agent.waitFor { isAnswer($0.topic) }
            let answers = scene.agent.messages.map(\.topic).filter(isAnswer)
            #expect(try answers == ["coaty/3/-/\(event)/\(speaker.identityId())/\(id)"])
        }
        _ = try scene.common(RoutingScene.path)
        #expect(try RoutingClusterScene.status(silent[0])?["version"] as? Int == 1)
    }

    @Test(arguments: [SIGTERM, SIGKILL]) func theSurvivorTakesOver(signal: Int32) throws {
        let scene = try RoutingClusterScene()
        let (speaker, silent) = try scene.speaker()
        try scene.lease()
        try waitUntil("the pairs are associated") { try scene.associates().count == 2 }
        let count = scene.agent.messages.count
        let id = try speaker.identityId()
        speaker.signal(signal)
        try waitUntil("the other one publishes all pairs") {
            try scene.associates(by: silent[0], after: count).sorted() == Self.published
        }
        try scene.agent.waitFor { $0.topic == "coaty/3/-/DAD/\(id)" }
        #expect(try scene.associates().allSatisfy { $0.hasPrefix("+") })
        #expect(try scene.context(silent[0])["router"] as? String == silent[0].identityId())
        #expect(try scene.associations(silent[0]) == Self.associations)
        #expect(try RoutingClusterScene.status(silent[0])?["term"] as? Int == 2)
        // The last one dissolves them.
        #expect(try silent[0].stop() == 0)
        try waitUntil("they are dissolved") {
            try scene.associates().filter { $0.hasPrefix("-") }.sorted() == ["-None normal", "-Sample normal"]
        }
    }

    /// After a short time, the gateway does not notice that it was frozen, and yields to the higher term.
    @Test(arguments: [true, false]) func aFrozenGatewayIsSilentWhenItReturns(isShort: Bool) throws {
        let scene = try RoutingClusterScene()
        let (speaker, silent) = try scene.speaker()
        try scene.lease()
        let id = try speaker.identityId()
        speaker.signal(SIGSTOP)
        // Deadvertised, it has left for the other one, unless it shows that it lives.
        if isShort { try scene.agent.publish("coaty/3/-/DAD/\(id)", #"{"objectIds":["\#(id)"]}"#) }
        try waitUntil("the other one speaks") {
            try RoutingClusterScene.status(silent[0])?["speaker"] as? String == silent[0].identityId()
        }
        try waitUntil("it publishes all pairs") { try scene.associates(by: silent[0]).sorted() == Self.published }
        let count = scene.agent.messages.count
        speaker.signal(SIGCONT)
        #expect(try scene.speaker().speaker === silent[0])
        if isShort {
            try waitUntil("it publishes all pairs again") {
                try scene.associates(by: silent[0], after: count).sorted() == Self.published
            }
            try speaker.untilLogged("another gateway speaks for an IO context")
        }
        // With a change, both have handled everything.
        #expect(try scene.send("PUT", #"{"rules":[]}"#, to: Self.rulesPath, at: speaker).status == 200)
        try waitUntil("the pairs are dissolved") {
            try scene.associates(by: silent[0], after: count).count { $0.hasPrefix("-") } == 2
        }
        #expect(try scene.associates(by: speaker, after: count) == [])
        _ = try scene.common(Self.rulesPath)
    }

    @Test func changesAreMadeByTheGatewayThatSpeaks() throws {
        let scene = try RoutingClusterScene()
        let (speaker, silent) = try scene.speaker()
        try scene.lease()
        let first = try scene.common(Self.rulesPath)
        let response = try scene.send("PUT", #"{"rules":[]}"#, to: Self.rulesPath, at: silent[0], ifMatch: first.etag)
        #expect(response.status == 200, "\(response.text)")
        #expect(RoutingScene.changes(response.json) == ["-None normal", "-Sample normal"])
        for gateway in scene.gateways { #expect(try scene.associations(gateway) == []) }
        let second = try scene.common(Self.rulesPath)
        #expect(response.headers["etag"] == second.etag && second.text == #"{"rules":[]}"#)
        try waitUntil("they are dissolved") {
            try scene.associates(by: speaker).count { $0.hasPrefix("-") } == 2
        }
        #expect(try scene.associates(by: silent[0]) == [])

        // Errors are the same.
        for gateway in scene.gateways {
            let outdated = try scene.send("PUT", #"{"rules":[]}"#, to: Self.rulesPath, at: gateway, ifMatch: first.etag)
            #expect(outdated.status == 412 && outdated.headers["etag"] == second.etag, "\(outdated.text)")
            let renamed = try scene.send("PATCH", #"{"name":"another"}"#, at: gateway)
            #expect(renamed.status == 400 && renamed.json?["pointer"] as? String == "/name", "\(renamed.text)")
        }
        for round in 0..<5 {
            let etag = try scene.common(RoutingScene.path).etag
            let requests = try scene.gateways.enumerated().map { index, gateway in
                try scene.begin("PATCH", #"{"level":\#(round * 10 + index)}"#, at: gateway, ifMatch: etag)
            }
            #expect(try requests.map { try $0.readResponse().status }.sorted() == [200, 412])
        }
        // Without a condition, each patch is applied to the result of another one.
        let requests = try (scene.gateways + scene.gateways).enumerated().map { index, gateway in
            try scene.begin("PATCH", #"{"member\#(index)":true}"#, at: gateway)
        }
        #expect(try requests.map { try $0.readResponse().status } == [200, 200, 200, 200])
        let text = try scene.common(RoutingScene.path).text
        for index in 0..<4 { #expect(text.contains(#""member\#(index)":true"#)) }
    }

    @Test func aGatewayThatJoinsLaterAdoptsTheRules() throws {
        let scene = try RoutingClusterScene()
        _ = try scene.speaker()
        try scene.lease()
        #expect(try scene.send("PUT", #"{"rules":[]}"#, to: Self.rulesPath, at: scene.gateways[0]).status == 200)
        let third = try scene.start()
        try scene.cluster.waitUntilComplete()
        #expect(try scene.common(Self.rulesPath).text == #"{"rules":[]}"#)
        #expect(try scene.speaker().speaker !== third)
        #expect(try scene.associations(third) == [] && scene.associates(by: third) == [])
        #expect(try !scene.advertisers.contains(third.identityId()))
        // It takes over with the rules.
        for gateway in scene.gateways where gateway !== third { scene.cluster.kill(gateway) }
        #expect(try scene.speaker().speaker === third)
        #expect(try scene.common(Self.rulesPath).text == #"{"rules":[]}"#)
        let rules = #"{"rules":[\#(RoutingScene.rule)]}"#
        #expect(try scene.send("PUT", rules, to: Self.rulesPath, at: third).status == 200)
        try waitUntil("it associates") { try scene.associates(by: third).sorted() == Self.published }
    }

    @Test func anotherRouterThatWasFirstKeepsTheContext() throws {
        let scene = try RoutingClusterScene(0)
        let other = try scene.startOther()
        let id = try other.identityId()
        try waitUntil("the other router speaks") { scene.advertisers == [id] }
        for _ in 0..<2 { try scene.start() }
        try scene.cluster.waitUntilComplete()
        try waitUntil("the gateways are ready and have seen it") {
            scene.gateways.allSatisfy { $0.log.contains("another agent routes this IO context too") }
        }
        try scene.lease()
        try waitUntil("it associates") { try scene.associates().sorted() == Self.published }
        #expect(scene.advertisers == [id])
        for gateway in scene.gateways {
            #expect(try RoutingClusterScene.status(gateway)?["speaker"] == nil)
            #expect(try scene.context(gateway)["router"] as? String == id)
            let response = try scene.send("PATCH", #"{"level":1}"#, at: gateway)
            #expect(response.status == 503 && response.problem == "no-router", "\(response.text)")
        }
        let count = scene.agent.messages.count
        #expect(try other.stop(SIGKILL) == -SIGKILL)
        let speaker = try scene.speaker().speaker
        try waitUntil("a gateway takes over") {
            try scene.associates(by: speaker, after: count).sorted() == Self.published
        }
    }

    @Test func theLatestStateReturnsAfterARestart() throws {
        let scene = try RoutingClusterScene(hasState: true)
        _ = try scene.speaker()
        let folders = scene.gateways
        #expect(try scene.send("PATCH", #"{"level":1}"#, at: folders[0]).status == 200)
        // The second gateway misses a change.
        scene.cluster.kill(folders[1])
        try waitUntil("it has left") { try folders[0].cluster().values.contains("left") }
        _ = try scene.speaker()
        #expect(try scene.send("PATCH", #"{"level":2}"#, at: folders[0]).status == 200)
        #expect(try scene.send("PUT", #"{"rules":[]}"#, to: Self.rulesPath, at: folders[0]).status == 200)
        scene.cluster.kill(folders[0])
        for index in [1, 0] { try scene.start(state: index) }
        _ = try scene.speaker()
        #expect(try scene.common(Self.rulesPath).text == #"{"rules":[]}"#)
        #expect(try scene.common(RoutingScene.path).text.contains(#""level":2"#))
        try waitUntil("both know the new term") {
            try scene.gateways.allSatisfy { try RoutingClusterScene.status($0)?["term"] as? Int ?? 0 >= 2 }
        }
    }

    @Test func anUnconfirmedChangeIsReported() throws {
        let scene = try RoutingClusterScene()
        let (speaker, silent) = try scene.speaker()
        // A gateway must confirm as soon as the other one knows that it is ready, which no status shows.
        var level = 0
        try waitUntil("a change awaits it") {
            level += 1
            silent[0].signal(SIGSTOP)
            defer { silent[0].signal(SIGCONT) }
            let response = try scene.send("PATCH", #"{"level":\#(level)}"#, at: speaker)
            return response.status == 503 && response.problem == "change-not-confirmed"
        }
        try waitUntil("both have the change") {
            try scene.common(RoutingScene.path).text.contains(#""level":\#(level)"#)
        }
    }
}
