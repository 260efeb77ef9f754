import Foundation
import TestSupport
import Testing

/// Hidden objects of another site, which must not leak to clients on any path.
@Suite(.exclusive, .frameChecks) struct VisibilityTests {
    static let lamps = "advertise?objectType=com.example.Lamp"
    static let secret = #","secret":"s3cret""#

    /// Clients of two sites, each of which sees and publishes only the objects of its site, and a client that sees all
    /// objects.
    static let file = AccessFile(
        tokens: [
            .init("hall-1", "viewer", site: "hall-1"), .init("hall-2", "viewer", site: "hall-2"),
            .init("admin", "admin"),
            .init("nobody", "nobody"),
        ],
        roles: [
            "nobody": ["{read: [info]}"],
            "viewer": [
                "{observe: [advertise, deadvertise, update], types: [\"com.example.*\"], where: \(AccessFile.ownSite)}",
                "{observe: [channel], channels: [\"*\"], where: \(AccessFile.ownSite)}", "{observe: [traffic]}",
                "{read: [objects], types: [\"com.example.*\"], where: \(AccessFile.ownSite)}", "{read: [status]}",
                "{request: [discover, query, update], types: [\"com.example.*\"], where: \(AccessFile.ownSite)}",
                "{publish: [advertise, deadvertise], types: [\"com.example.*\"], where: \(AccessFile.ownSite)}",
                "{publish: [channel], channels: [\"*\"], where: \(AccessFile.ownSite)}",
            ],
        ]
    )

    private func publish(_ scene: AccessScene, _ objects: String, to channel: String = "c") throws {
        try scene.publish("CHN:\(channel)", objects)
    }

    func lamp(_ name: String, _ site: String?) -> String { AccessScene.lamp(name, site: site) }

    func ids(_ answer: RawConnection.Response) throws -> [String] {
        let objects = try #require(answer.json?["objects"] as? [[String: Any]], "\(answer.text)")
        return objects.compactMap { $0["objectId"] as? String }
    }

    // MARK: - Events

    @Test func liveEventsAreFilteredOnEveryTransport() throws {
        let scene = try AccessScene(Self.file)
        let socket = try scene.socket(as: "hall-1")
        try socket.subscribe("s", #""event":"advertise","objectType":"com.example.Lamp""#)
        try socket.subscribe("u", #""event":"update","objectType":"com.example.Lamp""#)
        let single = try scene.socket(Self.lamps, as: "hall-1")
        #expect(try single.next().op == "ok")
        let events = try scene.events(Self.lamps, as: "hall-1")
        for site in ["hall-2", nil, "hall-10", "HALL-1", "hall-1"] {
            let object = AccessScene.lamp(site ?? "none", site: site)
            try scene.advertise(object)
            try scene.publish("UPD::com.example.Lamp/\(UUID().uuidString)", #"{"object":\#(object)}"#)
        }
        // Further objects, of a type without a grant or with values of another kind, are hidden.
        try scene.publish("ADV::com.example.Lamp", #"{"object":{"coreType":"CoatyObject"}}"#)
        try scene.advertise(AccessScene.lamp("array", site: nil, #","site":["hall-1"]"#))
        try scene.advertise(lamp("end", "hall-1"))
        try scene.publish("UPD::com.example.Lamp/end", #"{"object":\#(lamp("end", "hall-1"))}"#)
        for expected in ["hall-1", "end"] {
            #expect(try socket.next(of: "s").objectName == expected)
            #expect(try socket.next(of: "u").objectName == expected)
            #expect(try single.next().objectName == expected)
            #expect(try events.next()?.objectName == expected)
        }
        // A subscription without a grant is refused immediately.
        for target in [
            "advertise?objectType=org.other.Lamp", "advertise?coreType=Task", "discover", "call?operation=o",
        ] {
            let answer = try scene.get("/v1/sse/\(target)", as: "hall-1")
            #expect(answer.status == 403 && answer.problem == "forbidden", "\(target)")
            #expect((answer.json?["missing"] as? String)?.hasPrefix("- observe: [") ?? false, "\(answer.text)")
        }
    }

    /// Events are delivered unchanged, so all objects of an event must be visible.
    @Test func eventIsHiddenUnlessAllObjectsAreVisible() throws {
        let scene = try AccessScene(Self.file)
        let client = try scene.socket(as: "hall-1")
        try client.subscribe("s", #""event":"channel","channelId":"c""#)
        let (own, other) = (lamp("own", "hall-1"), lamp("other", "hall-2"))
        for payload in [
            #"{"objects":[\#(own),\#(other)]}"#, #"{"objects":[\#(other),\#(own)]}"#, #"{"objects":[]}"#,
            #"{"object":\#(other)}"#, #"{"objects":[],"privateData":{"secret":"s3cret"}}"#,
            #"{"object":\#(own),"objects":[\#(other)]}"#, #"{"object":\#(own),"relatedObjects":[\#(other)]}"#,
        ] {
            try publish(scene, payload)
        }
        try publish(scene, #"{"objects":[\#(own),\#(own)]}"#)
        try publish(scene, #"{"object":\#(lamp("end", "hall-1"))}"#)
        let both = try client.next(of: "s")
        #expect((both.data["objects"] as? [Any])?.count == 2, "\(both)")
        #expect(try client.next(of: "s").objectName == "end")
    }

    @Test func replayedEventsAreFilteredByVisibility() throws {
        let scene = try AccessScene(Self.file, ["--limit", "maximum-replay-memory=20000"])
        let channel = #""event":"channel","channelId":"c""#
        let admin = try scene.socket(as: "admin")
        try admin.subscribe("a", channel)
        func publish(_ name: String, _ site: String) throws {
            try self.publish(scene, #"{"object":\#(lamp(name, site))}"#)
            #expect(try admin.next(of: "a").objectName == name)
        }
        try publish("zero", "hall-1")
        let cursor = try #require(admin.received.last?["cursor"])
        for (name, site) in [("one", "hall-2"), ("two", "hall-1"), ("three", "hall-2"), ("four", "hall-1")] {
            try publish(name, site)
        }
        let client = try scene.socket(as: "hall-1")
        try client.subscribe("r", channel + #","since":"\#(cursor)""#)
        let events = try scene.gateway.eventStream(
            "channel?channelId=c",
            headers: AccessScene.headers("hall-1") + [("Last-Event-ID", cursor)]
        )
        for expected in ["two", "four"] {
            #expect(try client.next(of: "r").objectName == expected)
            #expect(try events.next()?.objectName == expected)
        }
        // Only a client that may see everything gets the size of a gap, because the size would reveal how many events
        // are hidden.
        for number in 0..<50 { try publish("\(number)", number % 2 == 0 ? "hall-1" : "hall-2") }
        try client.subscribe("g", channel + #","since":"\#(cursor)""#)
        let gap = try client.next(of: "g")
        #expect(gap.op == "gap" && gap.json["dropped"] is NSNull, "\(gap)")
        try admin.subscribe("g", channel + #","since":"\#(cursor)""#)
        #expect(try admin.next(of: "g").json["dropped"] as? Int ?? 0 > 0)
        // Cursors do not reveal it either: their positions cannot be subtracted.
        let positions = client.received.compactMap { $0["cursor"]?.split(separator: "-").last }.compactMap {
            UInt64($0)
        }
        #expect(positions.count > 2)
        #expect(zip(positions, positions.dropFirst()).allSatisfy { max($0, $1) - min($0, $1) > 100 })
    }

    /// An object that leaves the site is reported as removed, without its new version.
    @Test func snapshotsAndChangesAreFilteredByVisibility() throws {
        let scene = try AccessScene(Self.file)
        let (moving, other) = (AccessScene.id(), AccessScene.id())
        func advertise(_ id: String, _ site: String, _ name: String, _ members: String = "") throws {
            let object = AccessScene.lamp(name, site: site, id: id, members)
            try scene.publish("ADV:CoatyObject", #"{"object":\#(object)}"#, source: "agent-of-\(site)")
        }
        try advertise(moving, "hall-1", "first")
        try advertise(other, "hall-2", "other", Self.secret)
        try waitUntil("the objects are known") {
            try ids(scene.get("/v1/objects?objectType=com.example.Lamp", as: "admin")).count == 2
        }
        let members = #""event":"advertise","objectType":"com.example.Lamp","snapshot":true"#
        let (one, two) = (try scene.socket(as: "hall-1"), try scene.socket(as: "hall-2"))
        try one.subscribe("s", members)
        try two.subscribe("s", members)
        let events = try scene.events(Self.lamps + "&snapshot=true", as: "hall-1")
        #expect(try one.next(of: "s").objectName == "first")
        #expect(try events.next()?.objectName == "first")
        #expect(try two.next(of: "s").objectName == "other")
        try advertise(moving, "hall-2", "moved", Self.secret)
        let removed = try one.next(of: "s")
        #expect(removed["change"] == "removed" && removed.object["objectId"] as? String == moving)
        #expect(Set(removed.object.keys) == ["objectId", "coreType", "objectType"], "\(removed)")
        let removal = try #require(try events.next())
        #expect(removal.json["change"] as? String == "removed")
        for text in [removed.text, removal.text] {
            for new in [#""moved""#, "s3cret", "hall-2"] { #expect(!text.contains(new), "\(text)") }
        }
        let added = try two.next(of: "s")
        #expect(added["change"] == "added" && added.objectName == "moved")
        // Later changes of the object, and its end, are hidden until it returns to the site.
        try advertise(moving, "hall-2", "moved again", Self.secret)
        #expect(try two.next(of: "s")["change"] == "changed")
        try advertise(moving, "hall-1", "back")
        let back = try one.next(of: "s")
        #expect(back["change"] == "added" && back.objectName == "back")
        #expect(try two.next(of: "s")["change"] == "removed")
        try scene.publish("DAD", #"{"objectIds":["\#(other)"]}"#)
        #expect(try two.next(of: "s")["change"] == "removed")
        try advertise(moving, "hall-1", "end")
        #expect(try one.next(of: "s").objectName == "end")
        #expect(one.received.allSatisfy { !$0.text.contains(other) && !$0.text.contains("s3cret") })
    }

    /// Ids of hidden objects are removed from Deadvertise events.
    @Test func deadvertisedIdsAreReducedToTheVisibleOnes() throws {
        let scene = try AccessScene(Self.file)
        let (own, other) = (AccessScene.id(), AccessScene.id())
        func advertise() throws {
            try scene.advertise(AccessScene.lamp("own", site: "hall-1", id: own))
            try scene.advertise(AccessScene.lamp("other", site: "hall-2", id: other))
            try waitUntil("the objects are known") {
                try Set(ids(scene.get("/v1/objects", as: "admin"))).isSuperset(of: [own, other])
            }
        }
        try advertise()
        var client: FrameClient? = try scene.socket(as: "hall-1")
        try client?.subscribe("s", #""event":"deadvertise""#)
        let cursor = try #require(client?.received.last?["cursor"])
        let admin = try scene.socket(as: "admin")
        try admin.subscribe("s", #""event":"deadvertise""#)
        try scene.publish("DAD", #"{"objectIds":["\#(other)","unknown"]}"#)
        try scene.publish("DAD", #"{"objectIds":["unknown","\#(own)","\#(AccessScene.id())"]}"#)
        #expect(try client?.next(of: "s").data as NSDictionary? == ["objectIds": [own]])
        #expect(try admin.next(of: "s").data as NSDictionary == ["objectIds": [other, "unknown"]])
        #expect((try admin.next(of: "s").data["objectIds"] as? [String])?.count == 3)
        // A replayed event has the visibility that it had when it was published, even if the ids have been reused.
        client = nil
        try scene.advertise(AccessScene.lamp("own", site: "hall-2", id: own))
        try scene.advertise(AccessScene.lamp("other", site: "hall-1", id: other))
        let again = try scene.socket(as: "hall-1")
        try again.subscribe("s", #""event":"deadvertise","since":"\#(cursor)""#)
        #expect(try again.next(of: "s").data as NSDictionary == ["objectIds": [own]])
    }

    @Test func trafficIsFilteredEventByEvent() throws {
        let scene = try AccessScene(Self.file)
        let client = try scene.socket(as: "hall-1")
        try client.subscribe("t", #""event":"traffic""#)
        let other = #"{"object":\#(lamp("other", "hall-2"))}"#
        for event in [
            "ADV:CoatyObject", "CHN:c", "UPD:CoatyObject/c1", "RSV/c2", "CPL/c1", "IOV",
        ] {
            try scene.publish(event, other)
        }
        try scene.publish("RTV/c3", #"{"objects":[\#(lamp("other", "hall-2"))]}"#)
        try scene.publish("CLL:o/c4", #"{"parameters":{"secret":"s3cret"}}"#)
        try scene.publish("RTN/c4", #"{"result":"s3cret"}"#)
        try scene.publish("DSC/c5", #"{"objectTypes":["com.example.Lamp"]}"#)
        try scene.publish("QRY/c6", #"{"objectTypes":["com.example.Lamp"]}"#)
        try scene.publish("DAD", #"{"objectIds":["unknown"]}"#)
        try scene.publish("ASC:Room", #"{"ioSourceId":"a","ioActorId":"b"}"#)
        try scene.publish(
            "ADV:CoatyObject",
            #"{"object":\#(AccessScene.lamp("x", site: "hall-1", type: "org.other.X"))}"#
        )
        let own = #"{"object":\#(lamp("own", "hall-1"))}"#
        for event in ["ADV:CoatyObject", "CHN:c", "UPD:CoatyObject/c7"] { try scene.publish(event, own) }
        for event in ["advertise", "channel", "update"] {
            let frame = try client.next(of: "t")
            #expect(frame["event"] == event && frame.objectName == "own", "\(frame)")
        }
        #expect(try scene.get("/v1/sse/traffic", as: "nobody").status == 403)
    }
}
