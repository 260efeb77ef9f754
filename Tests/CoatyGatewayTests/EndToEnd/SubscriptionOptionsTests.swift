import Foundation
import TestSupport
import Testing
@testable import Base

/// Options of subscriptions: filter, fields, snapshot, throttle, encoding.
@Suite(.exclusive, .frameChecks) struct SubscriptionOptionsTests {
    private static func task(
        _ id: String,
        _ status: Int,
        floor: Int = 0,
        objectType: String = "com.example.Job"
    ) -> String {
        """
        {"coreType":"Task","objectType":"\(objectType)","objectId":"\(id)","name":"\(id)","creatorId":"c",\
        "creationTimestamp":1,"status":\(status),"detail":{"place":{"floor":\(floor),"room":"x"},"tags":["t"]}}
        """
    }

    private static func event(_ object: String) -> String { #"{"object":\#(object)}"# }

    private func publish(_ scene: Scene, _ object: String, channel: String = "c") throws {
        try scene.agent.publish("coaty/3/-/CHN:\(channel)/source", Self.event(object))
    }

    @Test func filterSelectsEvents() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        let filters: [(String, String)] = [
            (#"["name",["Equals","b"]]"#, "b"),
            (#"{"and":[["status",["GreaterThan",1]],["name",["NotEquals","d"]]]}"#, "c"),
            (
                #"{"or":[["name",["Equals","a"]],{"and":[["status",["GreaterThanOrEqual",2]],{"not":["name",["Equals","c"]]}]}]}"#,
                "ad"
            ),
            (#"["detail.place.floor",["In",[2,3]]]"#, "bc"),
            (#"[["detail","place","floor"],["Between",1,1]]"#, "a"),
            (#"["absent",["Exists"]]"#, ""), (#"["absent",["NotExists"]]"#, "abcd"), (#"["name",[7,"a"]]"#, "a"),
        ]
        for (number, (filter, _)) in filters.enumerated() {
            try client.subscribe("f\(number)", #""event":"channel","channelId":"c","filter":\#(filter)"#)
        }
        let single = try scene.gateway.frameClient("channel?channelId=c&filter=\(filters[2].0.percentEncoded)")
        let events = try scene.gateway.eventStream("channel?channelId=c&filter=\(filters[2].0.percentEncoded)")
        // Events are delivered in the order of the subscriptions.
        try client.subscribe("all", #""event":"channel","channelId":"c""#)
        for (number, id) in ["a", "b", "c", "d"].enumerated() {
            try publish(scene, Self.task(id, number, floor: number + 1))
        }
        for _ in 0..<4 { _ = try client.next(of: "all", "event") }
        for (number, (filter, expected)) in filters.enumerated() {
            let names = client.takeReceived(of: "f\(number)").compactMap { $0.object["name"] as? String }
            #expect(names.joined() == expected, "\(filter)")
        }
        #expect(try single.next().op == "ok")
        for name in ["a", "d"] {
            #expect(try single.next().object["name"] as? String == name)
            #expect(try #require(try events.next()).text.contains(#""name":"\#(name)""#))
        }
        // If an event has several objects and one matches, the whole event is delivered.
        try scene.agent.publish(
            "coaty/3/-/CHN:c/source",
            #"{"objects":[\#(Self.task("x", 0)),\#(Self.task("b", 0))]}"#
        )
        let several = try client.next(of: "f0")
        #expect((several.data["objects"] as? [Any])?.count == 2)
    }

    @Test func fieldsSelectProperties() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        try client.subscribe(
            "s",
            #""event":"channel","channelId":"c","fields":["name","detail.place.floor","absent",["detail","tags"]]"#
        )
        let events = try scene.gateway.eventStream(
            "channel?channelId=c&fields=name,detail.place.floor,absent,detail.tags"
        )
        let wanted: NSDictionary = [
            "objectId": "a", "name": "a", "detail": ["place": ["floor": 7], "tags": ["t"]] as NSDictionary,
        ]
        try publish(scene, Self.task("a", 0, floor: 7))
        #expect(try client.next(of: "s").object as NSDictionary == wanted)
        let event = try #require(try events.next())
        #expect((event.json["data"] as? [String: NSDictionary])?["object"] == wanted)
        try scene.agent.publish("coaty/3/-/CHN:c/source", #"{"objects":[\#(Self.task("a", 0, floor: 7))]}"#)
        #expect(try client.next(of: "s").data["objects"] as? [NSDictionary] == [wanted])
        #expect(try client.ask("subscribe", #""event":"channel","channelId":"c","fields":[]"#)["pointer"] == "/fields")
    }

    @Test func snapshotReportsSinceAndChangedTimes() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        try client.subscribe("t", #""event":"advertise","snapshot":true,"objectType":"t""#)
        func times() throws -> (since: Int, changed: Int) {
            let frame = try client.next(of: "t", "event")
            return (
                try #require(frame.json["since"] as? Int, "\(frame)"), try #require(frame.json["changed"] as? Int)
            )
        }
        func now() -> Int { Int(Date().timeIntervalSince1970 * 1000) }
        func advertise(_ name: String) throws -> Int {
            let begin = now()
            let object = #"{"coreType":"CoatyObject","objectType":"t","objectId":"i","name":"\#(name)"}"#
            try scene.agent.publish("coaty/3/-/ADV:CoatyObject/a", #"{"object":\#(object)}"#)
            return begin
        }
        let begin = try advertise("a")
        let added = try times()
        #expect(added.since >= begin && added.changed == added.since)
        try waitUntil("a later millisecond") { now() > added.since }
        let later = try advertise("b")
        let changed = try times()
        #expect(changed.since == added.since && changed.changed >= later && later > added.since)
        try scene.agent.publish("coaty/3/-/DAD/a", #"{"objectIds":["i"]}"#)
        #expect(try times() == changed)
    }

    @Test func snapshotDeliversObjectsAndTheirChanges() throws {
        let scene = try Scene()
        func advertise(_ object: String) throws {
            try scene.agent.publish("coaty/3/-/ADV:Task/owner", Self.event(object))
        }
        try advertise(Self.task("a", 0))
        try advertise(Self.task("b", 1))
        try advertise(Self.task("p", 1, objectType: "com.example.Part"))
        try waitUntil("all are known") {
            try scene.gateway.request("GET", "/v1/objects?coreType=Task").json?["total"] as? Int == 3
        }
        let client = try scene.gateway.frameClient()
        let snapshot = #""event":"advertise","snapshot":true"#
        try client.subscribe("type", snapshot + #","objectType":"com.example.Job""#)
        try client.subscribe("on", snapshot + #","objectType":"com.example.Job","filter":["status",["Equals",1]]"#)
        try client.subscribe("core", snapshot + #","coreType":"Task","fields":["status"]"#)
        try client.subscribe("all", snapshot)
        func changes(_ id: String, _ count: Int) throws -> Set<String> {
            Set(
                try (0..<count).map { _ in
                    let frame = try client.next(of: id)
                    #expect(frame.op == "event" && frame["sourceId"] == "owner" || id == "all", "\(frame)")
                    return "\(frame["change"] ?? "") \(frame.object["objectId"] ?? "")"
                }
            )
        }
        #expect(try changes("type", 2) == ["added a", "added b"])
        #expect(try changes("on", 1) == ["added b"])
        #expect(try changes("core", 3) == ["added a", "added b", "added p"])
        let id = try scene.gateway.identityId()
        #expect(try changes("all", 4).isSuperset(of: ["added a", "added b", "added p", "added \(id)"]))

        // An object that starts to match is added, one that stops is removed.
        try advertise(Self.task("a", 1))
        for (id, change) in [("type", "changed"), ("on", "added"), ("core", "changed"), ("all", "changed")] {
            #expect(try changes(id, 1) == ["\(change) a"], "\(id)")
        }
        try advertise(Self.task("b", 0))
        for (id, change) in [("type", "changed"), ("on", "removed"), ("core", "changed"), ("all", "changed")] {
            #expect(try changes(id, 1) == ["\(change) b"], "\(id)")
        }
        // An object whose type changes is removed, too.
        try advertise(Self.task("b", 0, objectType: "com.example.Part"))
        for (id, change) in [("type", "removed"), ("core", "changed"), ("all", "changed")] {
            #expect(try changes(id, 1) == ["\(change) b"], "\(id)")
        }
        try scene.agent.publish("coaty/3/-/DAD/owner", #"{"objectIds":["a"]}"#)
        for id in ["type", "on", "core", "all"] { #expect(try changes(id, 1) == ["removed a"], "\(id)") }
        // When an agent leaves, all objects that it has advertised are removed.
        try scene.agent.publish("coaty/3/-/DAD/owner", #"{"objectIds":["owner"]}"#)
        for id in ["core", "all"] { #expect(try changes(id, 2) == ["removed b", "removed p"], "\(id)") }

        // Streams with one subscription receive the same.
        let single = try scene.gateway.frameClient("advertise?snapshot=true&coreType=Identity")
        let events = try scene.gateway.eventStream("advertise?snapshot=true&coreType=Identity")
        #expect(try single.next().op == "ok")
        let frame = try single.next()
        #expect(frame.object["objectId"] as? String == id && frame["change"] == "added")
        #expect(try #require(try events.next()).json["change"] as? String == "added")
    }

    @Test func throttlesTheEventsOfAnObject() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        try client.subscribe("t", #""event":"channel","channelId":"c","throttle":3000"#)
        try client.subscribe("all", #""event":"channel","channelId":"c""#)
        for floor in 0..<20 { try publish(scene, Self.task("a", 0, floor: floor)) }
        try publish(scene, Self.task("b", 0))
        for _ in 0..<21 { _ = try client.next(of: "all") }
        // Events of other objects are delivered immediately, throttled events after them.
        func next() throws -> String {
            let object = try client.next(of: "t").object
            let place = (object["detail"] as? [String: Any])?["place"] as? [String: Any]
            return "\(object["objectId"] ?? "") \(place?["floor"] ?? "")"
        }
        #expect(try next() == "a 0")
        #expect(try next() == "b 0")
        #expect(try next() == "a 19")
        for parameters in [#""event":"deadvertise""#, #""event":"call","operation":"o""#] {
            #expect(try client.ask("subscribe", parameters + #","throttle":10"#)["pointer"] == "/throttle")
        }
    }

    @Test func binaryEncodingDeliversBytes() throws {
        let scene = try Scene()
        let octets: [UInt8] = [0, 0x0A, 0xFF, 0x22]
        let client = try scene.gateway.frameClient()
        try client.subscribe("b", #""event":"raw","topic":"raw/+","encoding":"binary""#)
        try client.subscribe("t", #""event":"raw","topic":"raw/+""#)
        let single = try scene.gateway.frameClient("raw?topic=raw/%23&encoding=binary")
        #expect(try single.next().op == "ok")
        try scene.agent.publish("raw/1", octets)
        let binary = try client.next(of: "b")
        #expect(binary.octets == octets && binary.data as? [String: String] == ["encoding": "binary"])
        #expect(binary["topic"] == "raw/1" && binary["cursor"] != nil)
        let text = try client.next(of: "t")
        #expect(text.octets == nil)
        #expect(text.data as? [String: String] == ["encoding": "base64", "value": Data(octets).base64EncodedString()])
        #expect(try single.next().octets == octets)
        let refused = try scene.gateway.request("GET", "/v1/sse/raw?topic=raw/1&encoding=binary")
        #expect(refused.status == 400 && refused.json?["parameter"] as? String == "encoding")
        for option in [#""filter":["a",["Exists"]]"#, #""fields":["a"]"#] {
            #expect(try client.ask("subscribe", #""event":"raw","topic":"raw/1","# + option).op == "error")
        }
    }

    /// After `ok`, every event is delivered.
    @Test func noEventIsMissedAfterOk() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        for number in 0..<200 {
            try client.subscribe("s\(number)", #""event":"channel","channelId":"c\#(number)""#)
            try publish(scene, Self.task("\(number)", 0), channel: "c\(number)")
            #expect(try client.next(of: "s\(number)").object["objectId"] as? String == "\(number)")
        }
    }
}
