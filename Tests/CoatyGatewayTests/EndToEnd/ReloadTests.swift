import Foundation
import Synchronization
import TestSupport
import Testing

/// Changes of the access configuration while clients are connected.
@Suite(.exclusive, .frameChecks) struct ReloadTests {
    private static let limit: TimeInterval = 1
    private static let channel = #""event":"channel","channelId":"load""#
    private static let lamps = #""event":"advertise","objectType":"com.example.Lamp""#
    private static let roles = [
        "user": [
            "{observe: [channel], channels: [load]}", "{request: [call], operations: [\"*\"]}",
            "{register: [nodes], contexts: [\"*\"]}", "{register: [identity]}", "{read: [nodes], contexts: [\"*\"]}",
            "{observe: [raw], topics: [\"a/+\"]}",
        ],
        "viewer": [
            "{observe: [advertise], types: [\"com.example.*\"], where: \(AccessFile.ownSite)}",
            "{read: [objects], types: [\"*\"]}",
        ],
    ]

    private static func file(_ names: String..., site: String = "hall-1", roles: [String: [String]] = roles)
        -> AccessFile
    {
        AccessFile(
            tokens: names.map { .init($0, "user") } + [.init("viewer", "viewer", site: site), .init("admin", "admin")],
            roles: roles
        )
    }

    // MARK: - Bad files

    @Test func aBadFileChangesNothing() throws {
        let scene = try AccessScene(Self.file("user"))
        let good = Self.file().yaml
        let client = try scene.socket(as: "user")
        try client.subscribe("s", Self.channel)
        for (bad, line) in [
            (good.replacing("roles: [viewer]", with: "roles: [watcher]"), 3),
            (good.replacing("- {read: [objects], types: [\"*\"]}", with: "- {read: [objects]}"), nil),
            (good + "unknown: 1\n", nil), (good + "  : [\n", nil), ("access: {}\n", 1),
            ("access: open\ntoken: short\n", 2),
        ] {
            let reason = try scene.reload(bad: bad)
            let lines = bad.split(separator: "\n", omittingEmptySubsequences: false).count
            let named = try #require(reason.firstMatch(of: /gateway\.yaml:(\d+):/), "\(reason)").1
            #expect(line == nil || named == "\(line ?? 0)", "\(reason)")
            #expect((1...lines).contains(Int(named) ?? 0))
            #expect(try scene.get("/v1/access", as: "user").status == 200)
        }
        try FileManager.default.removeItem(atPath: scene.path)
        scene.gateway.signal(SIGHUP)
        try waitUntil("the missing file is logged") { scene.gateway.log.contains("gateway.yaml: cannot be read") }
        try scene.publish("CHN:load", #"{"object":\#(AccessScene.lamp("one", site: nil))}"#)
        #expect(try client.next(of: "s").objectName == "one")
        // A valid file is applied afterwards.
        try scene.reload(Self.file())
        #expect(try scene.get("/v1/access", as: "user").status == 401)
        #expect(try client.closeCode(within: Self.limit) == 4503)
    }

    // MARK: - Removed tokens

    @Test func onlyStreamsOfRemovedTokenEnd() throws {
        let scene = try AccessScene(Self.file("leaver", "stayer"))
        let gateway = scene.gateway
        let load = NumberedLoad(brokerPort: scene.broker.port) { number, isLast in
            (
                "coaty/3/-/CHN:load/source",
                #"{"object":{"coreType":"CoatyObject","objectType":"t","objectId":"o","name":"n","#
                    + #""n":\#(number),"isLast":\#(isLast)}}"#
            )
        }
        defer { load.stop() }
        let received = Mutex([0, 0])
        let leavers = EndingClient.Stream.allCases.map { stream in
            (
                stream,
                ReaderThread { opened in
                    let headers = AccessScene.headers("leaver")
                    var client = EndingClient(gateway: gateway, headers: headers, channel: "load")
                    client.subscriptions = [#""event":"raw","topic":"a/+""#]
                    return try client.read(stream, opened: opened)
                }
            )
        }
        let stayers = [
            ReaderThread { opened in
                let client = try gateway.frameClient(headers: AccessScene.headers("stayer"))
                try client.subscribe("s", Self.channel + #","buffer":4096"#)
                opened()
                var count = 0
                while true {
                    let frame = try client.next()
                    guard frame.op == "event", frame.object["n"] as? Int == count else { return "\(count): \(frame)" }
                    count += 1
                    received.withLock { $0[0] = count }
                    if frame.object["isLast"] as? Bool == true { return "all \(count)" }
                }
            },
            ReaderThread { opened in
                let stream = try gateway.eventStream(
                    "channel?channelId=load&buffer=4096",
                    headers: AccessScene.headers("stayer")
                )
                opened()
                var count = 0
                while let event = try stream.next() {
                    let object = (event.json["data"] as? [String: Any])?["object"] as? [String: Any]
                    guard event.name == "event", object?["n"] as? Int == count else { return "\(count): \(event.text)" }
                    count += 1
                    received.withLock { $0[1] = count }
                    if object?["isLast"] as? Bool == true { return "all \(count)" }
                }
                return "ended"
            },
        ]
        try waitUntil("all streams are open") { (leavers.map(\.1) + stayers).allSatisfy(\.isOpen) }
        try waitUntil("the calls are published") {
            scene.agent.messages.count { $0.topic.contains("/CLL:o/") } == 2
        }
        // Publish in batches that the gateway can read quickly. Otherwise the broker may drop events, and a gap would
        // be correct.
        func publish() throws {
            for _ in 0..<5 {
                try load.publish(200)
                try waitUntil("the others have them") {
                    stayers.contains { $0.end != nil } || received.withLock(\.self).allSatisfy { $0 >= load.count }
                }
            }
        }
        try publish()
        let begin = Date()
        try scene.signal(Self.file("stayer").yaml)
        try publish()
        try waitUntil("all streams of the removed token end") { leavers.allSatisfy { $0.1.end != nil } }
        for (stream, reader) in leavers {
            let end = try #require(reader.end)
            #expect(end.text == stream.end(closeCode: 4503), "\(stream)")
            #expect(end.date.timeIntervalSince(begin) < Self.limit, "\(stream)")
        }
        let count = load.finish()
        try waitUntil("the others have everything") { stayers.allSatisfy { $0.end != nil } }
        for stayer in stayers { #expect(stayer.end?.text == "all \(count)") }
        for path in ["/v1/access", "/v1/sse/channel?channelId=load"] {
            #expect(try scene.get(path, as: "leaver").status == 401, "\(path)")
        }
    }

    /// The gateway discards the queue of a slow client, so that no event is delivered after the removal.
    @Test func slowClientsOfARemovedTokenReceiveNothingMore() throws {
        let scene = try AccessScene(Self.file("leaver"))
        let headers = AccessScene.headers("leaver")
        let target = "channel?channelId=load&buffer=4096"
        let slow = try scene.gateway.frameClient(receiveBuffer: 4096, headers: headers)
        try slow.subscribe("s", Self.channel + #","buffer":4096"#)
        let single = try scene.gateway.frameClient(target, receiveBuffer: 4096, headers: headers)
        #expect(try single.next().op == "ok")
        let path = "/v1/sse/" + target
        let port = scene.gateway.port
        let events = try EventStreamClient(port: port, path: path, headers: headers, receiveBuffer: 4096)
        #expect(try events.next()?.name == "ok")
        let filler = String(repeating: "x", count: 10_000)
        let count = 1500
        for number in 0..<count {
            let object = AccessScene.lamp("\(number)", site: nil, #","filler":"\#(filler)""#)
            try scene.publish("CHN:load", #"{"object":\#(object)}"#)
        }
        try waitUntil("the clients are behind") {
            let consumers = try scene.get("/v1/status", as: "admin").json?["slowConsumers"] as? [[String: Any]]
            return consumers?.count == 3
        }
        try scene.reload(Self.file())
        let begin = Date()
        // Only events that are already in the sockets are delivered.
        for client in [slow, single] {
            #expect(try client.closeCode() == 4503)
            #expect(client.received.count { $0.op == "event" } < count / 2)
        }
        var delivered: [EventStreamClient.Event] = []
        while let event = try events.next() { delivered.append(event) }
        #expect(delivered.count < count / 2 && delivered.last?.json["status"] as? Int == 401)
        #expect(Date().timeIntervalSince(begin) < Self.limit)
    }

    @Test func nodesAndIdentitiesOfRemovedTokenAreDeadvertised() throws {
        let scene = try AccessScene(Self.file("leaver", "stayer"))
        func register(_ name: String) throws -> (node: String, identity: String) {
            let body =
                #"{"contextName":"c","name":"n","leaseDuration":3600000,"ioSources":[{"name":"s","valueType":"t"}]}"#
            let answer = try scene.post("/v1/io/nodes", body, as: name)
            try #require(answer.status == 201, "\(answer.text)")
            let ids = ["node", "identity"].map { (answer.json?[$0] as? [String: Any])?["objectId"] as? String ?? "" }
            return (ids[0], ids[1])
        }
        let (leaving, staying) = (try register("leaver"), try register("stayer"))
        let client = try scene.socket(as: "leaver")
        let identity = try client.ask("identify", #""name":"n""#).json["identity"] as? [String: Any]
        let identityId = try #require(identity?["objectId"] as? String)
        try scene.reload(Self.file("stayer"))
        for id in [leaving.identity, identityId] {
            try scene.agent.waitFor { $0.topic == "coaty/3/-/DAD/\(id)" }
        }
        try waitUntil("the node is gone") { try scene.get("/v1/io/nodes/\(leaving.node)", as: "admin").status == 404 }
        #expect(try scene.get("/v1/io/nodes/\(staying.node)", as: "stayer").status == 200)
        #expect(!scene.agent.messages.contains { $0.topic == "coaty/3/-/DAD/\(staying.identity)" })
    }

    // MARK: - Replaced tokens

    /// Clients with the new token own what those with the old one have created.
    @Test func onlyConnectionsOfAReplacedTokenEnd() throws {
        let grants = [
            "{observe: [channel], channels: [load]}", "{request: [call], operations: [\"*\"]}",
            "{register: [nodes], contexts: [\"*\"]}", "{read: [nodes], contexts: [\"*\"]}",
            "{publish: [advertise, deadvertise], types: [\"com.example.*\"]}",
        ]
        func file(_ tokens: String...) -> AccessFile {
            let secrets = tokens.map(AccessFile.secret(of:))
            return AccessFile(tokens: [.init("user", "user", secrets: secrets)], roles: ["user": grants])
        }
        let scene = try AccessScene(file("old"))
        let gateway = scene.gateway
        let body = #"{"contextName":"c","name":"n","leaseDuration":3600000,"ioSources":[{"name":"s","valueType":"t"}]}"#
        let node = try scene.post("/v1/io/nodes", body, as: "old")
        func id(_ key: String) throws -> String {
            try #require((node.json?[key] as? [String: Any])?["objectId"] as? String, "\(node.text)")
        }
        let (nodeId, nodeIdentity, lampId) = (try id("node"), try id("identity"), AccessScene.id())
        func advertise(_ name: String, as token: String) throws -> Int {
            let lamp = AccessScene.lamp(name, site: nil, id: lampId)
            return try scene.post("/v1/advertise", #"{"object":\#(lamp)}"#, as: token).status
        }
        #expect(try advertise("first", as: "old") == 202)
        let clients = EndingClient.Stream.allCases.map { stream in
            (
                stream,
                ReaderThread { opened in
                    let client = EndingClient(gateway: gateway, headers: AccessScene.headers("old"), channel: "load")
                    return try client.read(stream, opened: opened)
                }
            )
        }
        try waitUntil("all streams are open") { clients.allSatisfy(\.1.isOpen) }
        try waitUntil("the calls are published") {
            scene.agent.messages.count { $0.topic.contains("/CLL:o/") } == 2
        }
        // While both tokens are listed, a client can change to the new one, also on its open connection.
        try scene.reload(file("old", "new"))
        let changed = try scene.socket(as: "old")
        try changed.subscribe("s", Self.channel)
        let secret = AccessFile.secret(of: "new")
        #expect(try changed.ask("authenticate", #""token":"\#(secret)""#).op == "ok")
        let ticket = try #require(try scene.post("/v1/tickets", "{}", as: "old").json?["ticket"] as? String)
        #expect(clients.allSatisfy { $0.1.end == nil })
        let begin = Date()
        try scene.reload(file("new"))
        try waitUntil("all streams of the replaced token end") { clients.allSatisfy { $0.1.end != nil } }
        for (stream, reader) in clients {
            let end = try #require(reader.end)
            #expect(end.text == stream.end(closeCode: 4503), "\(stream)")
            #expect(0..<Self.limit ~= end.date.timeIntervalSince(begin), "\(stream)")
        }
        #expect(try scene.get("/v1/access", as: "old").status == 401)
        let path = "/v1/sse/channel?channelId=load&ticket=\(ticket)"
        #expect(try EventStreamClient(port: gateway.port, path: path, headers: []).head.status == 401)
        try scene.publish("CHN:load", #"{"object":\#(AccessScene.lamp("one", site: nil))}"#)
        #expect(try changed.next(of: "s").objectName == "one")
        #expect(try scene.get("/v1/io/nodes/\(nodeId)", as: "new").status == 200)
        #expect(try advertise("second", as: "new") == 202)
        try scene.agent.waitFor { $0.topic.contains("/ADV:") && $0.text.contains(#""second""#) }
        for id in [nodeIdentity, lampId] {
            #expect(!scene.agent.messages.contains { $0.topic.contains("/DAD/") && $0.text.contains(id) }, "\(id)")
        }
    }

    // MARK: - Changed permissions

    @Test func changedAttributesApplyToActiveSubscriptions() throws {
        let scene = try AccessScene(Self.file("user"))
        let socket = try scene.socket(as: "viewer")
        try socket.subscribe("s", Self.lamps)
        let single = try scene.socket("advertise?objectType=com.example.Lamp", as: "viewer")
        #expect(try single.next().op == "ok")
        let events = try scene.events("advertise?objectType=com.example.Lamp", as: "viewer")
        func publish(_ site: String, _ name: String) throws {
            try scene.advertise(AccessScene.lamp(name, site: site))
        }
        try publish("hall-2", "hidden")
        try publish("hall-1", "first")
        #expect(try socket.next(of: "s").objectName == "first")
        #expect(try single.next().objectName == "first")
        #expect(try events.next()?.objectName == "first")
        try scene.reload(Self.file("user", site: "hall-2"))
        try publish("hall-1", "no longer visible")
        try publish("hall-2", "second")
        let gap = try socket.next(of: "s")
        #expect(gap.op == "gap" && gap.json["dropped"] is NSNull)
        #expect(try single.next().op == "gap")
        let gapEvent = try events.next()
        #expect(gapEvent?.name == "gap" && gapEvent?.json["dropped"] is NSNull)
        #expect(try socket.next(of: "s").objectName == "second")
        #expect(try single.next().objectName == "second")
        #expect(try events.next()?.objectName == "second")
    }

    @Test func aRemovedGrantEndsItsSubscriptions() throws {
        let scene = try AccessScene(Self.file("user"))
        let socket = try scene.socket(as: "user")
        try socket.subscribe("raw", #""event":"raw","topic":"a/+""#)
        try socket.subscribe("s", Self.channel)
        let single = try scene.socket("raw?topic=a%2F%2B", as: "user")
        let events = try scene.events("raw?topic=a%2F%2B", as: "user")
        #expect(try single.next().op == "ok")
        var roles = Self.roles
        roles["user"] = roles["user"]?.filter { !$0.contains("raw") }
        try scene.reload(Self.file("user", roles: roles))
        let error = try socket.next(of: "raw")
        #expect(error.op == "error" && error.json["status"] as? Int == 403)
        #expect(try single.next().json["status"] as? Int == 403)
        #expect(try single.closeCode() == 4501)
        #expect(try events.next()?.json["status"] as? Int == 403)
        #expect(try events.next() == nil)
        // The other subscription continues without a gap.
        try scene.agent.publish("a/b", "x")
        try scene.publish("CHN:load", #"{"object":\#(AccessScene.lamp("one", site: nil))}"#)
        #expect(try socket.next(of: "s").objectName == "one")
        #expect(socket.takeReceived(of: "raw").isEmpty)
    }

    @Test func unchangedTokensAreNotAffected() throws {
        let scene = try AccessScene(Self.file("user"))
        let socket = try scene.socket(as: "user")
        try socket.subscribe("s", Self.channel)
        let viewer = try scene.events("advertise?objectType=com.example.Lamp", as: "viewer")
        let admin = try scene.events("deadvertise", as: "admin")
        // Other tokens are added and removed, and other roles change.
        var roles = Self.roles
        roles["viewer"]?.removeLast()
        roles["new"] = ["{read: [info]}"]
        for file in [Self.file("user"), Self.file("new", "user"), Self.file("user")] { try scene.reload(file) }
        try scene.publish("CHN:load", #"{"object":\#(AccessScene.lamp("one", site: nil))}"#)
        try scene.advertise(AccessScene.lamp("two", site: "hall-1"))
        try scene.publish("DAD", #"{"objectIds":["x"]}"#)
        #expect(try socket.next().objectName == "one")
        #expect(try viewer.next()?.objectName == "two")
        #expect(try admin.next()?.json["event"] as? String == "deadvertise")
        // A change of one role affects only the tokens with this role.
        try scene.reload(Self.file("user", roles: roles))
        try scene.publish("CHN:load", #"{"object":\#(AccessScene.lamp("three", site: nil))}"#)
        #expect(try socket.next().objectName == "three")
        #expect(try viewer.next()?.name == "gap")
    }
}
