import Coaty
import Testing
import TestSupport

@testable import Base
@testable import Network

/// Effects of Advertise, Resolve and Deadvertise events on a table of objects.
@Suite(.exclusive) final class ObjectTableTests: ObjectTableScene {
    @Test func objectIsKeptUnchanged() throws {
        let json = Self.json("é \\u0041", .Task, #", "parentObjectId":"p", "n": 1.50 "#)
        try receive(json, from: "a")
        let object = try object("é A")
        #expect(object.bytes == Array(json.utf8))
        #expect(object.coreType == .Task && object.objectType == WireName("t"))
        #expect(object.parentObjectId == CoatyUUID(wire: "p") && object.owner == CoatyUUID(wire: "a"))
        #expect(object.since == 1 && object.changed == 1)
        #expect(object.json?["name"]?.string == "n")
        #expect(table.content.object(CoatyUUID(wire: "e\u{301} A")) == nil, "ids are compared byte by byte")
    }

    @Test func reportsEachChangeOnce() throws {
        try receive(Self.json("x"), from: "a")
        try receive(Self.json("x"), from: "a")
        try receive(Self.json("x"), from: "b", isAdvertised: false)
        #expect(changed == ["+x"])
        try receive(Self.json("x", .CoatyObject, #","v":1"#), from: "a")
        let change = try #require(lastChange)
        #expect(change.kind == .changed && change.previous?.changed == 1 && change.object.changed == now)
        #expect(change.object.since == 1)
        #expect(changed == ["~x"])
        try receive(Self.json("x", .CoatyObject, #","v":1"#), from: "b")
        #expect(changed == ["~x"], "another agent advertises it")
        deadvertise("y")
        deadvertise("x")
        deadvertise("x")
        #expect(changed == ["-x"])
        try receive(Self.json("x"), from: "a")
        #expect(try object("x").since == now)
        #expect(changed == ["+x"])
    }

    @Test func logsAndObjectsWithoutIdAreIgnored() throws {
        try receive(Self.json("l", .Log), from: "a")
        try receive(#"{"coreType":"Task","objectType":"t","objectId":7,"name":"n"}"#, from: "a")
        try receive(#"{"coreType":"Task","objectType":"t","name":"n"}"#, from: "a")
        #expect(ids.isEmpty && table.content.isComplete)
    }

    @Test func ownerIsLastAdvertiserOrFirstResolver() throws {
        try receive(Self.json("x"), from: "a", isAdvertised: false)
        try receive(Self.json("x"), from: "b", isAdvertised: false)
        #expect(try object("x").owner.string == "a")
        try receive(Self.json("x"), from: "b")
        #expect(try object("x").owner.string == "b")
        try receive(Self.json("x", .CoatyObject, #","v":1"#), from: "a", isAdvertised: false)
        #expect(try object("x").owner.string == "b")
        #expect(try object("x").json?["v"]?.number == 1)

        // An agent owns its identity, even if another agent resolved it first.
        try receive(Self.json("i", .Identity), from: "a", isAdvertised: false)
        try receive(Self.json("i", .Identity), from: "i", isAdvertised: false)
        #expect(try object("i").owner.string == "i")
    }

    @Test func deadvertiseRemovesChildrenAndOwnedObjects() throws {
        try receive(Self.json("a", .Identity), from: "a")
        try receive(Self.json("b", .Identity), from: "b")
        try receive(Self.json("a1"), from: "a")
        try receive(Self.json("a2"), from: "a", isAdvertised: false)
        try receive(Self.json("b1", .CoatyObject, #","parentObjectId":"a1""#), from: "b")
        try receive(Self.json("b2", .CoatyObject, #","parentObjectId":"a""#), from: "b")
        try receive(Self.json("b3"), from: "a")
        try receive(Self.json("b3"), from: "b")
        deadvertise("a1")
        #expect(ids == ["a", "a2", "b", "b2", "b3"])
        _ = changed
        deadvertise("a")
        #expect(ids == ["b", "b3"])
        #expect(changed.sorted() == ["-a", "-a2", "-b2"])
        deadvertise("b")
        #expect(ids.isEmpty)
        #expect(table.content.departed.agents.map(\.since) == [now - 1, now])
        #expect(table.content.departed.agents.allSatisfy { !$0.isOnline })
        // The agent returns. It had really left, so nothing needs to be discovered.
        #expect(try !receive(Self.json("a", .Identity), from: "a"))
        #expect(table.content.departed.agents.count == 1)
    }

    @Test func oldestObjectIsEvictedUnlessItIsAnAgent() throws {
        limit(objects: 4)
        try receive(Self.json("a", .Identity), from: "a")
        for id in ["x", "y", "z"] { try receive(Self.json(id), from: "a") }
        #expect(table.content.isComplete)
        try receive(Self.json("x"), from: "b", isAdvertised: false)
        _ = changed
        try receive(Self.json("v"), from: "a")
        #expect(!table.content.isComplete)
        #expect(changed == ["-y", "+v"])
        try receive(Self.json("z"), from: "a")
        for id in ["u", "w", "s"] { try receive(Self.json(id), from: "a") }
        #expect(changed == ["-x", "+u", "-v", "+w", "-z", "+s"])
        deadvertise("u", "w", "s")
        #expect(ids == ["a"] && !table.content.isComplete)
    }

    @Test func identitiesOfOthersDoNotFillTheTable() throws {
        limit(objects: 6)
        for id in ["a", "b", "c"] { try join(id) }
        for number in 1...10 { try receive(Self.json("\(number)", .Identity), from: "a") }
        #expect(ids == ["10", "8", "9", "a", "b", "c"])
        try receive(Self.json("x"), from: "b")
        #expect(ids == ["10", "9", "a", "b", "c", "x"])
        #expect(agents == ["a", "b", "c"])
    }

    @Test func agentsTakeAtMostHalfOfAFullTable() throws {
        limit(objects: 6)
        for number in 1...6 { try join("\(number)") }
        #expect(ids.count == 6 && table.content.isComplete)
        for id in ["x", "y", "z", "u"] { try receive(Self.json(id), from: "1") }
        #expect(ids == ["4", "5", "6", "u", "y", "z"] && !table.content.isComplete)
        #expect(table.content.departed.agents.isEmpty, "evicted agents may still be in the network")
        try join("1")
        #expect(ids == ["1", "4", "5", "6", "u", "z"])
        // The agent shows itself again.
        try receive(Self.json("4", .Identity, #","v":1"#), from: "4")
        try receive(Self.json("x"), from: "1")
        #expect(ids == ["1", "4", "6", "u", "x", "z"])
    }

    @Test func agentsTakeAtMostHalfOfTheBytes() throws {
        func padded(_ id: String, _ coreType: CoreType) -> String {
            Self.json(id, coreType, #","p":"\#(String(repeating: "p", count: 1000))""#)
        }
        limit(bytes: 4 * (padded("x", .CoatyObject).utf8.count + 1))
        for id in ["a", "b", "c"] { try receive(padded(id, .Identity), from: id) }
        for id in ["x", "y", "z"] { try receive(padded(id, .CoatyObject), from: "c") }
        #expect(ids == ["b", "c", "y", "z"])
    }

    @Test func objectsAreFoundByTheirTypes() throws {
        try receive(Self.json("x"), from: "a")
        try receive(Self.json("y", .Task), from: "a")
        try receive(#"{"coreType":"Task","objectType":"u","objectId":"z","name":"n"}"#, from: "a")
        func found(_ kind: ObjectKind?) -> [String] {
            var (unread, found) = (table.content.listed.unread(kind), [String]())
            while let object = unread.popFirst() {
                if kind?.includes(object) ?? true { found.append(object.objectId.string) }
            }
            return found
        }
        func found(_ objectType: String) -> [String] { found(.object(WireName(objectType))) }
        #expect(found(nil) == ["x", "y", "z"])
        #expect(found(.core(.Task)) == ["y", "z"] && found("t") == ["x", "y"])
        #expect(found(.core(.User)).isEmpty && found("v").isEmpty)
        // A new version may have other types.
        try receive(#"{"coreType":"Task","objectType":"u","objectId":"x","name":"n"}"#, from: "a")
        #expect(found("u") == ["x", "z"] && found(.core(.CoatyObject)).isEmpty && found("t") == ["y"])
        deadvertise("x", "y", "z")
        #expect(found(nil).isEmpty && found(.core(.Task)).isEmpty && found("u").isEmpty)
    }

    @Test func copiesOfTheContentDoNotChange() throws {
        try join("a")
        try receive(Self.json("x"), from: "a")
        let content = table.content
        try receive(Self.json("x", .CoatyObject, #","v":1"#), from: "b")
        try receive(Self.json("y"), from: "a")
        deadvertise("a")
        #expect(
            content.listed.inOrder.map(\.objectId.string) == ["a", "x"] && content.agents.map(\.isOnline) == [true]
        )
        #expect(content.object(CoatyUUID(wire: "x"))?.json?["v"] == nil)
        #expect(content.dependents(of: CoatyUUID(wire: "a")).map(\.objectId.string) == ["x"])
        #expect(content.known(CoatyUUID(wire: "y")) == nil)
        #expect(ids == ["x"])
    }

    @Test func bytesAreBounded() throws {
        func padded(_ id: String, _ count: Int) -> String {
            Self.json(id, .CoatyObject, #","p":"\#(String(repeating: "p", count: count))""#)
        }
        let size = padded("x", 1000).utf8.count + 1
        limit(objects: 100, bytes: 3 * size)
        for id in ["x", "y", "z"] { try receive(padded(id, 1000), from: "a") }
        #expect(table.content.isComplete)
        try receive(padded("y", 999), from: "a")
        #expect(table.content.isComplete)
        _ = changed
        try receive(padded("z", 1002), from: "a")
        #expect(changed == ["-x", "~z"])
        // If there is no room for a new version, the old one is removed.
        try receive(padded("y", 4000), from: "a")
        #expect(changed == ["-z", "-y"] && ids.isEmpty)

        try receive(padded("x", 10), from: String(repeating: "a", count: 3 * size))
        #expect(ids.isEmpty, "the source id counts, too")
    }

    @Test func tooLargeObjectIsNotListed() throws {
        try receive(Self.json("x"), from: "a")
        let large = #","p":"\#(String(repeating: "p", count: Limits().objectSize))""#
        try receive(Self.json("y", .CoatyObject, large), from: "a")
        #expect(ids == ["x"] && !table.content.isComplete)
        try receive(Self.json("x", .CoatyObject, large), from: "a")
        #expect(ids.isEmpty)
        #expect(changed == ["+x", "-x"])
    }

    @Test func silentAgentsAndTheirObjectsAreRemoved() throws {
        for id in ["a", "b", "c"] {
            try receive(Self.json(id, .Identity), from: id)
            try receive(Self.json(id + "1"), from: id)
        }
        for id in ["a2", "a3", "a4"] { try receive(Self.json(id), from: "a") }
        try receive(Self.json("a3"), from: "b", isAdvertised: false)
        #expect(!table.hasUnconfirmed)
        markUnconfirmed()
        #expect(table.hasUnconfirmed)
        confirm("b")
        // Another agent resolves the objects; one of the agents has no known identity.
        try receive(Self.json("a2"), from: "b", isAdvertised: false)
        try receive(Self.json("a4"), from: "nobody", isAdvertised: false)
        try receive(Self.json("c", .Identity), from: "b", isAdvertised: false)
        _ = changed
        removeUnconfirmed()
        #expect(ids == ["a2", "b", "b1"])
        #expect(try object("a2").owner.string == "b")
        #expect(Set(changed) == ["-a", "-a1", "~a2", "-a3", "-a4", "-c", "-c1"])
        #expect(!table.hasUnconfirmed)
        #expect(table.content.departed.agents.map(\.since) == [now, now])
        // The agent was only presumed to have left, so the registry asks for its objects.
        #expect(try receive(Self.json("a", .Identity), from: "a"))
        #expect(try !receive(Self.json("a", .Identity), from: "a"))
        deadvertise("b")
        #expect(ids == ["a", "a1", "a3", "a4"])
    }

    @Test func latestDepartedAgentsAreListed() throws {
        for number in 0..<(Limits().departedAgents + 5) {
            try receive(Self.json("\(number)", .Identity), from: "\(number)")
            deadvertise("\(number)")
        }
        #expect(table.content.departed.agents.count == Limits().departedAgents)
        #expect(table.content.departed.agents.first?.identity == Array(Self.json("5", .Identity).utf8))
        let large = #","p":"\#(String(repeating: "p", count: Limits().objectSize - 100))""#
        for id in ["a", "b", "c", "d", "e"] {
            try receive(Self.json(id, .Identity, large), from: id)
            deadvertise(id)
        }
        #expect(table.content.departed.agents.count < 10)
        #expect(
            table.content.departed.agents.map(\.identity.count).reduce(0, +) <= DepartedAgents.bytesPerAgent
                * Limits().departedAgents
        )
    }
}
