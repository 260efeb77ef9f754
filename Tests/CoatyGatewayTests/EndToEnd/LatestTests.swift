import Foundation
import TestSupport
import Testing

/// Subscriptions that begin with the last event of each object or IO source.
@Suite(.exclusive, .frameChecks) struct LatestTests {
    private static let channel = #""event":"channel","channelId":"c""#
    private static let latest = channel + #","latest":true"#
    private static let ids = (0..<3).map { _ in UUID().uuidString.lowercased() }

    private func publish(_ scene: Scene, _ name: String, of object: Int, channel: String = "c") throws {
        let object =
            #"{"coreType":"CoatyObject","objectType":"t","objectId":"\#(Self.ids[object])","name":"\#(name)"}"#
        try scene.agent.publish("coaty/3/-/CHN:\(channel)/source", #"{"object":\#(object)}"#)
    }

    /// Returns the names of the next objects, marked if they are from before the subscription.
    private func names(_ client: FrameClient, _ id: String, _ count: Int) throws -> [String] {
        try (0..<count).map { _ in
            let frame = try client.next(of: id, "event")
            let isLatest = frame.json["latest"] as? Bool ?? false
            #expect((frame["cursor"] == nil) == isLatest, "\(frame)")
            return (frame.object["name"] as? String ?? "") + (isLatest ? " latest" : "")
        }
    }

    @Test func channelBeginsWithTheLastEventOfEachObject() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        try client.subscribe("first", Self.channel)
        for (name, object) in [("a1", 0), ("b1", 1), ("a2", 0)] { try publish(scene, name, of: object) }
        #expect(try names(client, "first", 3) == ["a1", "b1", "a2"])
        // From the events that are kept for clients which resume.
        try client.subscribe("second", Self.latest)
        #expect(try names(client, "second", 2) == ["b1 latest", "a2 latest"])
        try publish(scene, "b2", of: 1)
        try publish(scene, "c1", of: 2)
        #expect(try names(client, "second", 2) == ["b2", "c1"])
        // From those that the feed has kept since.
        try client.subscribe("third", Self.latest)
        #expect(try names(client, "third", 3) == ["a2 latest", "b2 latest", "c1 latest"])
        try publish(scene, "c2", of: 2)
        for id in ["second", "third"] { #expect(try names(client, id, 1) == ["c2"]) }
        try client.subscribe("filtered", Self.latest + #","filter":["name",["Equals","b2"]]"#)
        #expect(try names(client, "filtered", 1) == ["b2 latest"])

        let events = try scene.gateway.eventStream("channel?channelId=c&latest=true")
        let first = try #require(try events.next())
        #expect(first.id == nil && first.json["latest"] as? Bool == true && first.text.contains("a2"))
    }

    @Test func clientsGetOnlyTheLastEventsThatTheyMayObserve() throws {
        let scene = try AccessScene(
            AccessFile(
                tokens: [.init("admin", "admin"), .init("guest", "guest")],
                roles: [
                    "guest": [#"{observe: [channel], channels: ["*"], where: ["object.name", ["Equals", "open"]]}"#]
                ]
            )
        )
        let admin = try scene.socket(as: "admin")
        try admin.subscribe("s", Self.latest)
        for (index, name) in ["secret", "open"].enumerated() {
            let object =
                #"{"coreType":"CoatyObject","objectType":"t","objectId":"\#(Self.ids[index])","name":"\#(name)"}"#
            try scene.agent.publish("coaty/3/-/CHN:c/source", #"{"object":\#(object)}"#)
        }
        #expect(try names(admin, "s", 2) == ["secret", "open"])
        let guest = try scene.socket(as: "guest")
        try guest.subscribe("s", Self.latest)
        #expect(try names(guest, "s", 1) == ["open latest"])
        #expect(!guest.received.contains { $0.text.contains("secret") })
    }

    /// While one object changes all the time, each new subscription sees increasing numbers.
    @Test func lastEventsAreNeitherRepeatedNorOlderThanLiveEvents() throws {
        let scene = try Scene()
        let keeper = try scene.gateway.frameClient()
        try keeper.subscribe("s", Self.latest)
        let clients = try (0..<20).map { _ in try scene.gateway.frameClient() }
        var number = 0
        func publishNext(_ count: Int) throws {
            for _ in 0..<count {
                number += 1
                try publish(scene, "\(number)", of: 0)
            }
        }
        try publishNext(10)
        #expect(try names(keeper, "s", 1) == ["1"])
        for client in clients {
            try client.send(#"{"op":"subscribe","id":"s",\#(Self.latest)}"#)
            try publishNext(10)
        }
        for client in clients {
            var seen: [Int] = []
            while seen.last != number {
                let frame = try client.next(of: "s", "event")
                #expect((frame.json["latest"] as? Bool ?? false) == seen.isEmpty)
                seen.append(try #require((frame.object["name"] as? String).flatMap { Int($0) }))
            }
            #expect(seen == Array(seen[0]...number))
        }
    }

    @Test func onlyTheNewestObjectsAreKept() throws {
        let scene = try Scene()
        let keeper = try scene.gateway.frameClient()
        try keeper.subscribe("s", Self.latest)
        for number in 1...1100 {
            let object =
                #"{"coreType":"CoatyObject","objectType":"t","objectId":"\#(UUID().uuidString)","name":"\#(number)"}"#
            try scene.agent.publish("coaty/3/-/CHN:c/source", #"{"object":\#(object)}"#)
            #expect(try names(keeper, "s", 1) == ["\(number)"])
        }
        let client = try scene.gateway.frameClient()
        try client.subscribe("s", Self.latest + #","buffer":2000"#)
        #expect(try names(client, "s", 1000) == (101...1100).map { "\($0) latest" })
        try publish(scene, "end", of: 0)
        #expect(try names(client, "s", 1) == ["end"])
    }

    @Test func ioValuesBeginWithTheLastValueOfTheSource() throws {
        let scene = try RoutingScene()
        try scene.leaseSources()
        try scene.leaseActor("normal")
        let (source, actor) = (try #require(RoutingScene.ids["None"]), try #require(RoutingScene.ids["normal"]))
        let client = try scene.gateway.frameClient()
        try client.subscribe("state", #""event":"iostate","ioPointId":"\#(actor)""#)
        _ = try client.next("an association") { $0.id == "state" && $0.text.contains(#""hasAssociations":true"#) }
        try client.subscribe("first", #""event":"iovalue","ioActorId":"\#(actor)""#)
        for value in ["20.5", "21.5"] {
            #expect(try scene.gateway.post("/v1/io/sources/\(source)/values", value).status == 202)
            _ = try client.next("the value") { $0.id == "first" && $0.text.contains(value) }
        }
        try client.subscribe("second", #""event":"iovalue","ioActorId":"\#(actor)","latest":true"#)
        let last = try client.next(of: "second")
        #expect(last.json["latest"] as? Bool == true && last.text.contains("21.5") && last["cursor"] == nil)
    }

    @Test func otherSubscriptionsHaveNoLatest() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        let refused = try client.ask("subscribe", id: "s", #""event":"raw","topic":"a","latest":true"#)
        #expect(refused.op == "error" && refused.json["status"] as? Int == 400, "\(refused)")
    }
}
