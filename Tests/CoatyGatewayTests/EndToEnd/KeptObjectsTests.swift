import Foundation
import TestSupport
import Testing

/// Objects of clients after reconnects to the broker, and the ends of their lifetimes.
@Suite(.exclusive, .frameChecks) struct KeptObjectsTests {
    /// An object that clients advertise.
    private struct Thing {
        let id = UUID().uuidString.lowercased()
        var name = "first"
        var parent: String?

        var json: String {
            let parent = parent.map { #","parentObjectId":"\#($0)""# } ?? ""
            return
                #"{"coreType":"CoatyObject","objectType":"coaty.CoatyObject","objectId":"\#(id)","name":"\#(name)"\#(parent)}"#
        }

        /// The body of a request that advertises it.
        func body(lifetime: String? = nil) -> String {
            let member = lifetime.map { #","lifetime":\#($0)"# } ?? ""
            return #"{"object":\#(json)\#(member)}"#
        }

        func advertise(_ gateway: GatewayProcess, lifetime: String? = nil) throws {
            let answer = try gateway.post("/v1/advertise", body(lifetime: lifetime))
            #expect(answer.text == #"{"deferred":false}"#)
        }

        func isAdvertised(in message: MQTTTestClient.Message) -> Bool {
            message.topic.contains("/ADV:CoatyObject/") && message.text == #"{"object":\#(json)}"#
        }

        func isDeadvertised(in message: MQTTTestClient.Message) -> Bool {
            message.topic.contains("/DAD/") && message.text.contains(id)
        }
    }

    /// Restarts the broker while the gateway is stopped, so that the returned agent receives everything that the
    /// gateway sends after its reconnect.
    private func restart(_ broker: BrokerProcess, _ gateway: GatewayProcess) throws -> MQTTTestClient {
        gateway.signal(SIGSTOP)
        defer { gateway.signal(SIGCONT) }
        try broker.restart()
        let agent = try MQTTTestClient(port: broker.port)
        try agent.subscribe("coaty/#")
        return agent
    }

    /// Advertises a marker, and returns all messages before it: everything that the gateway has sent so far.
    private func messages(
        before marker: Thing,
        _ scene: Scene,
        _ agent: MQTTTestClient
    ) throws -> [MQTTTestClient.Message] {
        let own = try scene.gateway.identityId()
        // Until then, the gateway may not have noticed that the broker was restarted.
        _ = try agent.waitFor(within: 60) { $0.topic == "coaty/3/-/ADV:Identity/\(own)" }
        try scene.gateway.untilReady()
        try marker.advertise(scene.gateway)
        let last = try agent.waitFor { marker.isAdvertised(in: $0) }
        return Array(agent.messages.prefix { $0 != last })
    }

    @Test func lastVersionsAreAdvertisedAgainInOrder() throws {
        let scene = try Scene()
        var (parent, child) = (Thing(), Thing())
        child.parent = parent.id
        let withdrawn = Thing()
        // The child comes first, so that the order is not that of the first advertisements.
        for thing in [child, parent, withdrawn] { try thing.advertise(scene.gateway) }
        parent.name = "second"
        try parent.advertise(scene.gateway)
        #expect(try scene.gateway.post("/v1/deadvertise", #"{"objectIds":["\#(withdrawn.id)"]}"#).status == 202)
        _ = try scene.agent.waitFor { withdrawn.isDeadvertised(in: $0) }

        let messages = try messages(before: Thing(name: "marker"), scene, restart(scene.broker, scene.gateway))
        let own = try scene.gateway.identityId()
        let advertised = messages.filter { $0.topic.contains("/ADV:") }
        #expect(advertised.count == 3, "\(advertised.map(\.text))")
        #expect(advertised.first?.topic == "coaty/3/-/ADV:Identity/\(own)")
        #expect(advertised.map(\.text).suffix(2) == [parent, child].map { #"{"object":\#($0.json)}"# })
    }

    @Test func objectsReturnAfterTheWillOfTheGateway() throws {
        let scene = try Scene(["--broker-keepalive", "5"])
        let thing = Thing()
        try thing.advertise(scene.gateway)
        _ = try scene.agent.waitFor { thing.isAdvertised(in: $0) }
        let own = try scene.gateway.identityId()
        // The broker ends the gateway's connection after one and a half keepalives.
        scene.gateway.signal(SIGSTOP)
        defer { scene.gateway.signal(SIGCONT) }
        let will = try scene.agent.waitFor(within: 60) { $0.topic == "coaty/3/-/DAD/\(own)" }
        let late = try MQTTTestClient(port: scene.broker.port)
        try late.subscribe("coaty/#")
        scene.gateway.signal(SIGCONT)
        #expect(will.text == #"{"objectIds":["\#(own)"]}"#)
        _ = try late.waitFor { thing.isAdvertised(in: $0) }
        let topics = late.messages.map(\.topic)
        let identity = try #require(topics.firstIndex(of: "coaty/3/-/ADV:Identity/\(own)"))
        #expect(try identity < #require(topics.firstIndex(of: "coaty/3/-/ADV:CoatyObject/\(own)")))
    }

    @Test func lifetimeInSecondsEndsWithDeadvertise() throws {
        let scene = try Scene()
        let (short, renewed, long) = (Thing(), Thing(), Thing())
        try short.advertise(scene.gateway, lifetime: "1")
        try renewed.advertise(scene.gateway, lifetime: "1")
        try renewed.advertise(scene.gateway)
        try long.advertise(scene.gateway, lifetime: "3600")
        // The member is not sent to agents.
        _ = try scene.agent.waitFor { short.isAdvertised(in: $0) }
        let end = try scene.agent.waitFor { short.isDeadvertised(in: $0) }
        #expect(end.text == #"{"objectIds":["\#(short.id)"]}"#)
        let batch = #"[{"event":"advertise","lifetime":1,"data":{"object":\#(short.json)}}]"#
        #expect(try scene.gateway.post("/v1/batch", batch).text.contains("202"))
        try waitUntil("it is deadvertised again") {
            scene.agent.messages.count { short.isDeadvertised(in: $0) } == 2
        }
        #expect(!scene.agent.messages.contains { renewed.isDeadvertised(in: $0) || long.isDeadvertised(in: $0) })

        let messages = try messages(before: Thing(name: "marker"), scene, restart(scene.broker, scene.gateway))
        #expect(messages.contains { renewed.isAdvertised(in: $0) } && messages.contains { long.isAdvertised(in: $0) })
        #expect(!messages.contains { short.isAdvertised(in: $0) })
    }

    @Test func lifetimeThatEndsOfflineIsDeadvertisedLater() throws {
        let scene = try Scene()
        let thing = Thing()
        try thing.advertise(scene.gateway, lifetime: "3")
        // Otherwise, the event may still be in the outbox.
        try scene.gateway.untilReceived(by: scene.agent)
        scene.broker.kill()
        try waitUntil("offline") { try scene.gateway.request("GET", "/readyz").status == 503 }
        func deferred() throws -> Double? {
            try scene.gateway.metric("coaty_gateway_broker_messages_deferred_total")
        }
        let before = try #require(try deferred())
        try waitUntil("the Deadvertise event is queued") { try deferred() == before + 1 }
        let messages = try messages(before: Thing(name: "marker"), scene, restart(scene.broker, scene.gateway))
        #expect(messages.contains { thing.isDeadvertised(in: $0) })
        #expect(!messages.contains { thing.isAdvertised(in: $0) })
    }

    @Test func lifetimeOfAConnectionEndsWithIt() throws {
        let scene = try Scene()
        let (things, taken) = ((0..<3).map { _ in Thing() }, Thing())
        var client: FrameClient? = try scene.gateway.frameClient()
        for thing in things + [taken] {
            let members = #""event":"advertise","lifetime":"connection","data":\#(thing.body())"#
            #expect(try client?.ask("publish", members).op == "ok")
        }
        try taken.advertise(scene.gateway)
        _ = try scene.agent.waitFor { things[2].isAdvertised(in: $0) }
        #expect(!scene.agent.messages.contains { things[0].isDeadvertised(in: $0) })
        client = nil
        for thing in things { _ = try scene.agent.waitFor { thing.isDeadvertised(in: $0) } }
        #expect(!scene.agent.messages.contains { taken.isDeadvertised(in: $0) })
    }

    @Test func lifetimeOfAConnectionEndsWhenItsPeerVanishes() throws {
        let scene = try Scene()
        let thing = Thing()
        let client = try scene.gateway.frameClient()
        let members = #""event":"advertise","lifetime":"connection","data":\#(thing.body())"#
        #expect(try client.ask("publish", members).op == "ok")
        // The client neither reads nor answers pings from here on.
        _ = try scene.agent.waitFor(within: 120) { thing.isDeadvertised(in: $0) }
        withExtendedLifetime(client) {}
    }

    @Test func objectsOfAClientIdentityBelongToIt() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        let answer = try client.ask("identify", #""name":"Kiosk""#)
        let id = try #require((answer.json["identity"] as? [String: Any])?["objectId"] as? String)
        let (lasting, bound) = (Thing(), Thing())
        for (thing, lifetime) in [(lasting, ""), (bound, #""lifetime":"connection","#)] {
            let members = #""event":"advertise",\#(lifetime)"data":\#(thing.body())"#
            #expect(try client.ask("publish", members).op == "ok")
        }
        let agent = try restart(scene.broker, scene.gateway)
        for thing in [lasting, bound] {
            let message = try agent.waitFor(within: 60) { thing.isAdvertised(in: $0) }
            #expect(message.topic == "coaty/3/-/ADV:CoatyObject/\(id)")
        }
        // The restarted broker may have inherited the descriptor, so releasing the client would not close the connection.
        try client.socket.sendClose(code: 1000)
        _ = try agent.waitFor { $0.topic == "coaty/3/-/DAD/\(id)" && $0.text == #"{"objectIds":["\#(id)"]}"# }
        let ends = agent.messages.filter { bound.isDeadvertised(in: $0) }
        #expect(ends.map(\.topic) == ["coaty/3/-/DAD/\(id)"])
        let messages = try messages(before: Thing(name: "marker"), scene, restart(scene.broker, scene.gateway))
        #expect(!messages.contains { lasting.isAdvertised(in: $0) || bound.isAdvertised(in: $0) })
    }

    @Test func objectsThatOthersReplaceOrDeadvertiseDoNotReturn() throws {
        let scene = try Scene()
        let other = UUID().uuidString.lowercased()
        let (replaced, withdrawn, child, kept) = (Thing(), Thing(), Thing(name: "child", parent: other), Thing())
        for thing in [replaced, withdrawn, child, kept] { try thing.advertise(scene.gateway) }
        // Otherwise, the broker may receive them after the events of the other agent.
        try scene.gateway.untilReceived(by: scene.agent)
        var newer = replaced
        newer.name = "newer"
        let source = UUID().uuidString.lowercased()
        try scene.agent.publish("coaty/3/-/ADV:CoatyObject/\(source)", #"{"object":\#(newer.json)}"#)
        try scene.agent.publish("coaty/3/-/DAD/\(other)", #"{"objectIds":["\#(withdrawn.id)","\#(other)"]}"#)
        try waitUntil("the gateway has received both") {
            let objects = try scene.gateway.request("GET", "/v1/objects?coreType=CoatyObject").text
            return objects.contains("newer") && !objects.contains(withdrawn.id) && !objects.contains(child.id)
        }
        let messages = try messages(before: Thing(name: "marker"), scene, restart(scene.broker, scene.gateway))
        #expect(messages.contains { kept.isAdvertised(in: $0) })
        for thing in [replaced, newer, withdrawn, child] {
            #expect(messages.filter { $0.text.contains(thing.id) && $0.topic.contains("/ADV:") } == [])
        }
    }

    @Test func boundOfOneClientDoesNotAffectOthers() throws {
        let access = AccessFile(
            tokens: [.init("ann", "maker"), .init("bob", "maker")],
            roles: ["maker": [#"{publish: [advertise, deadvertise], types: ["*"]}"#]]
        )
        let scene = try AccessScene(access, ["--limit", "maximum-kept-object-bytes-per-client=4000"])
        func advertise(_ thing: Thing, as name: String) throws -> String {
            try scene.post("/v1/advertise", thing.body(), as: name).text
        }
        let things = (0..<3).map { _ in Thing() }
        let (kept, notKept) = (#"{"deferred":false}"#, #"{"deferred":false,"kept":false}"#)
        #expect(try things.map { try advertise($0, as: "ann") } == [kept, kept, notKept])
        let refused = try scene.post("/v1/advertise", Thing().body(lifetime: "60"), as: "ann")
        #expect(refused.status == 429 && refused.problem == "too-many-kept-objects", "\(refused.text)")
        // A new version of a kept object needs no further room.
        #expect(try advertise(things[0], as: "ann") == kept)
        let other = Thing()
        #expect(try advertise(other, as: "bob") == kept)
        var agent = try restart(scene.broker, scene.gateway)
        for thing in things.prefix(2) + [other] {
            _ = try agent.waitFor(within: 60) { thing.isAdvertised(in: $0) }
        }
        #expect(!agent.messages.contains { things[2].isAdvertised(in: $0) })

        // The objects of a removed token are withdrawn.
        var reduced = access
        reduced.tokens.removeFirst()
        try scene.reload(reduced)
        for thing in things.prefix(2) { _ = try agent.waitFor { thing.isDeadvertised(in: $0) } }
        agent = try restart(scene.broker, scene.gateway)
        _ = try agent.waitFor(within: 60) { other.isAdvertised(in: $0) }
        #expect(!agent.messages.contains { message in things.contains { $0.isAdvertised(in: message) } })
    }

    @Test(arguments: [#""connection""#, "0", "1.5", "86401", #""60""#, "null", "-1"])
    func unusableLifetimesAreRefused(_ lifetime: String) throws {
        let scene = try Scene()
        let thing = Thing()
        let refused = try scene.gateway.post("/v1/advertise", thing.body(lifetime: lifetime))
        #expect(refused.status == 400 && refused.problem == "invalid-value", "\(refused.text)")
        #expect(refused.json?["pointer"] as? String == "/lifetime")
        let batch = try scene.gateway.post(
            "/v1/batch",
            #"[{"event":"advertise","lifetime":\#(lifetime),"data":\#(thing.body())}]"#
        )
        #expect(batch.text.contains(#""pointer":"/lifetime""#), "\(batch.text)")
    }
}
