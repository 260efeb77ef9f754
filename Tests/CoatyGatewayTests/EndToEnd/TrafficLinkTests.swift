import Foundation
import TestSupport
import Testing

/// The session that observes the network's traffic.
@Suite(.exclusive, .frameChecks) struct TrafficLinkTests {
    private static let traffic = #""event":"traffic""#

    /// Starts a broker that logs the subscriptions of its clients.
    private static func talkativeBroker() throws -> BrokerProcess {
        try BrokerProcess(extraConfiguration: ["log_type all"])
    }

    /// Returns the topic filters that each client has subscribed to, in order. Excludes the session that observes other
    /// namespaces and the gateway's subscriptions to the answers to its own requests, because they come at any time.
    private static func subscriptions(_ broker: BrokerProcess) -> [(client: String, filter: String)] {
        everySubscription(broker).filter {
            !observesOtherNamespaces($0.filter) && !$0.filter.contains(/^coaty\/3\/-\/RSV\/\+\/[0-9a-f-]{36}$/)
        }
    }

    private static func everySubscription(_ broker: BrokerProcess) -> [(client: String, filter: String)] {
        broker.log.split(separator: "\n").compactMap { line in
            guard let match = line.firstMatch(of: /: (Coaty[0-9a-f]{18}) 0 (\S+)$/) else { return nil }
            return (String(match.1), String(match.2))
        }
    }

    private static func observesOtherNamespaces(_ filter: String) -> Bool { filter.hasPrefix("coaty/3/+/") }

    /// Returns the clients that have disconnected normally, in order.
    private static func left(_ broker: BrokerProcess) -> [String] {
        let others = Set(everySubscription(broker).filter { observesOtherNamespaces($0.filter) }.map(\.client))
        return broker.log.matches(of: /Client (Coaty[0-9a-f]{18}) disconnected\./).map { String($0.1) }
            .filter { !others.contains($0) }
    }

    @Test func eventTypesNarrowBrokerSubscriptions() throws {
        let scene = try Scene(broker: Self.talkativeBroker())
        let main = try #require(Self.subscriptions(scene.broker).first?.client)
        let client = try scene.gateway.frameClient()
        let choices: [(String, [String])] = [
            ("", ["coaty/3/-/+/+", "coaty/3/-/+/+/+"]), (#"["call","return"]"#, ["coaty/3/-/+/+/+"]),
            (#"["advertise"]"#, ["coaty/3/-/+/+"]),
            (#"["resolve","deadvertise"]"#, ["coaty/3/-/DAD/+", "coaty/3/-/RSV/+/+"]),
        ]
        for (index, (events, filters)) in choices.enumerated() {
            let before = Self.subscriptions(scene.broker).count
            try client.subscribe("t\(index)", Self.traffic + (events.isEmpty ? "" : #","events":\#(events)"#))
            let added = Self.subscriptions(scene.broker).dropFirst(before)
            #expect(added.map(\.filter) == filters)
            #expect(Set(added.map(\.client)).count == 1 && added.first?.client != main)
        }
        try scene.publishAll()
        try scene.publishEnd()
        let first = try client.events(of: "t0").compactMap { $0["event"] }
        #expect(first == SentEvent.all.map(\.event))
        #expect(try client.next(of: "t1")["event"] == "call")
        #expect(try client.next(of: "t1")["event"] == "return")
        #expect(try client.next(of: "t2")["event"] == "advertise")
        #expect(try client.next(of: "t3")["event"] == "deadvertise")
        #expect(try client.next(of: "t3")["event"] == "resolve")
        #expect(try client.next(of: "t3")["sourceId"] == "end")
        // The gateway's main session has no overlapping subscriptions.
        let own = Self.everySubscription(scene.broker).filter { $0.client == main }.map(\.filter)
        #expect(!own.isEmpty && Set(own).count == own.count)
        #expect(own.allSatisfy { !$0.hasPrefix("coaty/3/-/+") && !$0.hasPrefix("coaty/3/+") && !$0.contains("#") })
        for id in ["t0", "t1", "t2", "t3"] { #expect(client.takeReceived(of: id).isEmpty, "no duplicates") }
    }

    @Test func sessionLastsAsLongAsItsObservers() throws {
        let scene = try Scene(["--resume-window", "0"], broker: Self.talkativeBroker())
        func links(_ filter: String = "coaty/3/-/+/+") -> Set<String> {
            Set(Self.subscriptions(scene.broker).filter { $0.filter == filter }.map(\.client))
        }
        #expect(links().isEmpty)
        let client = try scene.gateway.frameClient()
        try client.subscribe("a", Self.traffic)
        // Further subscriptions share the session.
        try client.subscribe("b", Self.traffic)
        var single: FrameClient? = try scene.gateway.frameClient("traffic")
        #expect(try single?.next().op == "ok")
        let first = links()
        #expect(first.count == 1)
        for id in ["a", "b"] { #expect(try client.ask("unsubscribe", id: id).op == "ok") }
        // Another session closes meanwhile; the first would have been closed before it.
        try client.subscribe("other", Self.traffic + #","events":["resolve"]"#)
        let other = links("coaty/3/-/RSV/+/+")
        #expect(try client.ask("unsubscribe", id: "other").op == "ok")
        try waitUntil("the other goes, in order") { Set(Self.left(scene.broker)).isSuperset(of: other) }
        try scene.publishEnd()
        #expect(try single?.next()["sourceId"] == "end")
        #expect(Self.left(scene.broker) == Array(other) && first.isDisjoint(with: other))
        single = nil
        try waitUntil("the link goes, in order") { Self.left(scene.broker) == Array(other) + Array(first) }
        try client.subscribe("c", Self.traffic)
        #expect(links().count == 2)
        // Only the session with the gateway's identity has a will; observing sessions have none.
        #expect(scene.broker.log.matches(of: /Will message specified/).count == 1)
    }

    @Test func brokerRestartIsReportedAsOneGap() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        try client.subscribe("t", Self.traffic + #","events":["call"]"#)
        try scene.agent.publish("coaty/3/-/CLL:o/s/1", "{}")
        let before = try client.next(of: "t")
        scene.broker.kill()
        #expect(try client.next(of: "t").op == "gap")
        try scene.broker.restart()
        let agent = try MQTTTestClient(port: scene.broker.port)
        // Publish until both sessions are connected again.
        var number = 1
        var after: FrameClient.Frame?
        try waitUntil("events come again") {
            number += 1
            try agent.publish("coaty/3/-/CLL:o/s/\(number)", "{}")
            after = try? client.next("an event", within: 0.1) { $0.id == "t" && $0.op == "event" }
            return after != nil
        }
        try scene.gateway.untilReady()
        let first = try #require(after?["correlationId"].flatMap { Int($0) })
        try agent.publish("coaty/3/-/CLL:o/s/last", "{}")
        _ = try client.next("the last") { $0["correlationId"] == "last" }
        #expect(client.received.count { $0.op == "gap" } == 1)

        // A client that resumes gets the gap as well.
        try client.subscribe("r", Self.traffic + #","events":["call"],"since":"\#(before["cursor"] ?? "")""#)
        #expect(try client.next(of: "r").op == "gap")
        #expect(try client.next(of: "r")["correlationId"] == "\(first)")
    }

    @Test func brokerRefusalIsReportedAsError() throws {
        let scene = try Scene(broker: BrokerProcess(refusing: "coaty/3/-/+/+"))
        let client = try scene.gateway.frameClient()
        let refused = try client.ask("subscribe", Self.traffic)
        #expect(refused.op == "error" && refused.json["status"] as? Int == 403)
        #expect(refused["type"] == "urn:coaty-gateway:problem:subscription-refused")
        try client.subscribe("t", Self.traffic + #","events":["call","deadvertise"]"#)
        try scene.agent.publish("coaty/3/-/CLL:o/s/1", "{}")
        #expect(try client.next(of: "t")["event"] == "call")
    }

    /// The broker accepts no further connection, so the observing session cannot connect. The subscription does not
    /// wait for it.
    @Test func refusedConnectionIsReportedAsGap() throws {
        let broker = try BrokerProcess(extraConfiguration: ["max_connections 5"])
        let scene = try Scene(broker: broker)
        var others: [RawConnection] = []
        repeat {
            others.append(try RawConnection(port: broker.port))
        } while try !others[others.count - 1].isClosedByPeer(within: 0.2)
        let client = try scene.gateway.frameClient()
        try client.subscribe("t", Self.traffic)
        #expect(try client.next(of: "t").op == "gap")
        #expect(try scene.gateway.request("GET", "/readyz").status == 200)
    }

    @Test func subscriptionBeginsAtOnceWithoutBroker() throws {
        let broker = try BrokerProcess()
        broker.kill()
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)"])
        let client = try gateway.frameClient()
        try client.subscribe("t", Self.traffic)
        #expect(try client.next(of: "t").op == "gap")
        try broker.restart()
        let agent = try MQTTTestClient(port: broker.port)
        try waitUntil("events come") {
            try agent.publish("coaty/3/-/DAD/s", "{}")
            return (try? client.next("an event", within: 0.1) { $0.id == "t" && $0.op == "event" }) != nil
        }
        #expect(client.received.count { $0.op == "gap" } == 1)
    }

    @Test func brokerConnectionsPerClientAreLimited() throws {
        let scene = try Scene(["--limit", "maximum-broker-connections-per-client=8"], broker: Self.talkativeBroker())
        let client = try scene.gateway.frameClient()
        let names = SentEvent.all.map(\.event)
        func choice(_ index: Int) -> String { Self.traffic + #","events":["\#(names[index])"]"# }
        let before = Self.subscriptions(scene.broker).count
        for index in 0..<8 { try client.subscribe("t\(index)", choice(index)) }
        let first = try #require(Self.subscriptions(scene.broker).dropFirst(before).first?.client)
        let cursors = client.received.reduce(into: [:]) { $0[$1.id ?? ""] = $1["cursor"] }
        let refused = try client.ask("subscribe", choice(8))
        #expect(refused.json["status"] as? Int == 503)
        #expect(refused["type"] == "urn:coaty-gateway:problem:too-many-subscriptions")
        try client.subscribe("again", choice(7))
        // Two unused sessions stay open, but do not count towards the limit.
        for index in 0..<2 { #expect(try client.ask("unsubscribe", id: "t\(index)").op == "ok") }
        try client.subscribe("t8", choice(8))
        #expect(try client.ask("unsubscribe", id: "t2").op == "ok")
        try waitUntil("one goes") { !Self.left(scene.broker).isEmpty }
        // The other sessions are still open: clients can resume without a gap.
        #expect(try client.ask("unsubscribe", id: "t8").op == "ok")
        for index in 3..<8 { #expect(try client.ask("unsubscribe", id: "t\(index)").op == "ok") }
        try client.subscribe("back", choice(7) + #","since":"\#(cursors["t7"] ?? "")""#)
        try scene.publishAll()
        #expect(try client.next(of: "back").op == "event")
        #expect(Self.left(scene.broker).first == first)
    }

    /// The broker's host does not answer. Each subscription tries to connect for some seconds, or until it ends.
    @Test func repeatedSubscriptionsLeakNoDescriptors() throws {
        let listener = try FullListener()
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(listener.port)"])
        let client = try gateway.frameClient()
        let before = try gateway.descriptors()
        let names = SentEvent.all.map(\.event)
        var (begun, refused) = (0, 0)
        for index in 0..<40 {
            let events =
                #""\#(names[index % names.count])","\#(names[(index + 1 + index / names.count) % names.count])""#
            let answer = try client.ask("subscribe", id: "t", Self.traffic + #","events":[\#(events)]"#)
            if answer.op == "ok" { begun += 1 } else { refused += 1 }
            #expect(answer.op == "ok" || answer["type"] == "urn:coaty-gateway:problem:too-many-subscriptions")
            if answer.op == "ok" { #expect(try client.ask("unsubscribe", id: "t").op == "ok") }
        }
        #expect(begun >= 10 && begun + refused == 40)
        #expect(try gateway.descriptors() <= before + 10 * 5)
        #expect(try gateway.request("GET", "/healthz").status == 200)
        let status = try gateway.stop()
        #expect(status == 0, "\(gateway.log)")
    }

    @Test func sessionsDisconnectBeforeTheGatewayEnds() throws {
        let scene = try Scene(["--limit", "maximum-broker-connections-per-client=8"], broker: Self.talkativeBroker())
        let client = try scene.gateway.frameClient()
        for (index, sent) in SentEvent.all.prefix(8).enumerated() {
            try client.subscribe("t\(index)", Self.traffic + #","events":["\#(sent.event)"]"#)
        }
        // Unused sessions are disconnected, too.
        for index in 0..<2 { #expect(try client.ask("unsubscribe", id: "t\(index)").op == "ok") }
        let all = Set(Self.subscriptions(scene.broker).map(\.client))
        #expect(all.count == 9)
        #expect(try scene.gateway.stop() == 0)
        try waitUntil("all have left in order") { Set(Self.left(scene.broker)) == all }
    }
}
