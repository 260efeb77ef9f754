import Coaty
import Testing
import TestSupport

@testable import Base
@testable import Network

/// The objects that a table lists again when a departed agent returns.
@Suite(.exclusive) final class ObjectTableReturnTests: ObjectTableScene {
    @Test(arguments: [true, false])
    func objectsOfAnAgentReturnWithIt(isIdentityAdvertised: Bool) throws {
        try join("a")
        try receive(Self.json("x", .Task, #", "v": 1.50 "#), from: "a")
        try receive(Self.json("y"), from: "a", isAdvertised: false)
        try receive(Self.child("z", of: "x"), from: "a")
        deadvertise("a")
        #expect(ids.isEmpty)
        _ = changed
        try receive(Self.json("a", .Identity), from: "a", isAdvertised: isIdentityAdvertised)
        #expect(changed == ["+a", "+x", "+y", "+z"], "in the order in which they were listed before")
        let object = try object("x")
        #expect(object.bytes == Array(Self.json("x", .Task, #", "v": 1.50 "#).utf8))
        #expect(object.owner.string == "a" && object.since == now && object.changed == now)
        #expect(try object.position > self.object("a").position)
        try join("a")
        #expect(changed.isEmpty)
        // The agent may leave and return any number of times.
        deadvertise("a")
        #expect(ids.isEmpty)
        try join("a")
        #expect(ids == ["a", "x", "y", "z"] && table.content.isComplete)
    }

    @Test func childrenDoNotReturn() throws {
        try join("a")
        try receive(Self.child("own", of: "a"), from: "a")
        try receive(Self.child("foreign", of: "a"), from: "b")
        deadvertise("a")
        try join("a")
        #expect(ids == ["a"] && table.content.isComplete)
        try receive(Self.child("own", of: "a"), from: "a")
        #expect(ids == ["a", "own"])
    }

    @Test func anotherAgentOrIdentityDoesNotBringObjectsBack() throws {
        try join("a")
        try receive(Self.json("x"), from: "a")
        deadvertise("a")
        try join("restarted a")
        confirm("a")
        try receive(Self.json("y"), from: "a")
        #expect(ids == ["restarted a", "y"])
        try join("a")
        #expect(ids == ["a", "restarted a", "x", "y"])
    }

    @Test func objectsThatWereDeadvertisedByIdDoNotReturn() throws {
        try join("a")
        for id in ["before", "with", "with too", "after", "stays"] { try receive(Self.json(id), from: "a") }
        deadvertise("before")
        deadvertise("with", "a", "with too")
        deadvertise("after")
        try join("a")
        #expect(ids == ["a", "stays"])
    }

    @Test func objectsWhoseParentWasDeadvertisedDoNotReturn() throws {
        try join("a")
        try join("b")
        try receive(Self.json("parent"), from: "a")
        try receive(Self.child("x", of: "parent"), from: "a")
        try receive(Self.child("y", of: "b"), from: "a")
        // The will of an agent also lists its IO nodes.
        try receive(Self.child("node", of: "a", .IoNode), from: "a")
        try receive(Self.child("z", of: "node"), from: "a")
        deadvertise("a", "node")
        deadvertise("parent", "b")
        try join("a")
        #expect(ids == ["a"])
    }

    @Test func objectsTakenOverByAnotherAgentStayWithIt() throws {
        try join("a")
        try join("b")
        for id in ["x", "y"] { try receive(Self.json(id), from: "a") }
        deadvertise("a")
        try receive(Self.json("x", .CoatyObject, #","v":1"#), from: "b")
        try receive(Self.json("y"), from: "b", isAdvertised: false)
        _ = changed
        try join("a")
        #expect(changed == ["+a"])
        #expect(try object("x").owner.string == "b" && object("x").json?["v"]?.number == 1)
        #expect(try object("y").owner.string == "b")
        deadvertise("x", "y")
        deadvertise("a")
        try join("a")
        #expect(ids == ["a", "b"])
    }

    @Test func objectsOfAnAgentThatWasPresumedGoneReturnWithIt() throws {
        try join("a")
        for id in ["x", "y", "z"] { try receive(Self.json(id), from: "a") }
        try receive(Self.child("child", of: "a"), from: "a")
        markUnconfirmed()
        removeUnconfirmed()
        #expect(ids.isEmpty)
        deadvertise("y")
        #expect(try join("a"))
        #expect(ids == ["a", "x", "z"] && table.content.isComplete)
    }

    @Test func identitiesAdvertisedByOtherAgentsAreNotAgents() throws {
        try join("proxy")
        try receive(Self.json("a", .Identity), from: "proxy")
        try receive(Self.json("b", .Identity), from: "proxy", isAdvertised: false)
        #expect(agents == ["proxy"])
        deadvertise("b")
        markUnconfirmed()
        removeUnconfirmed()
        #expect(ids.isEmpty && agents.isEmpty)
        #expect(table.content.departed.agents.count == 1)
        #expect(try join("proxy"))
        #expect(ids == ["a", "proxy"] && agents == ["proxy"])
        #expect(table.content.departed.agents.isEmpty)
        // The agent itself joins.
        #expect(try !join("a"))
        #expect(agents == ["a", "proxy"])
    }

    @Test func anAgentStaysTheOwnerOfItsIdentity() throws {
        try join("a")
        try receive(Self.json("x"), from: "a")
        try receive(Self.json("a", .Identity, #","v":1"#), from: "b")
        #expect(try object("a").owner.string == "a" && object("a").json?["v"]?.number == 1)
        #expect(agents == ["a"])
        deadvertise("a")
        try receive(Self.json("a", .Identity), from: "b")
        #expect(ids == ["a"] && agents.isEmpty && table.content.departed.agents.count == 1)
        #expect(try !join("a"))
        #expect(ids == ["a", "x"] && agents == ["a"] && table.content.departed.agents.isEmpty)
    }

    // MARK: - Bounds

    @Test func objectsOfDepartedAgentsMakeRoomFirst() throws {
        limit(objects: 5)
        try join("a")
        for id in ["x", "y", "z"] { try receive(Self.json(id), from: "a") }
        deadvertise("a")
        try join("b")
        for id in ["1", "2"] { try receive(Self.json(id), from: "b") }
        #expect(ids == ["1", "2", "b"] && table.content.isComplete)
        _ = changed
        // x is evicted, which does not change the list.
        try receive(Self.json("3"), from: "b")
        #expect(changed == ["+3"] && table.content.isComplete)
        // y is evicted to make room for a.
        try join("a")
        #expect(changed == ["+a"])
        #expect(!table.content.isComplete, "an object of a is missing")
    }

    @Test func theListStaysCompleteUntilAnAgentWithForgottenObjectsReturns() throws {
        limit(objects: 4)
        for agent in ["a", "b"] {
            try join(agent)
            try receive(Self.json("of " + agent), from: agent)
        }
        deadvertise("a")
        try join("c")
        try receive(Self.json("of c"), from: "c")
        #expect(ids == ["b", "c", "of b", "of c"] && table.content.isComplete)
        deadvertise("c", "b")
        try join("b")
        try join("c")
        #expect(ids == ["b", "c", "of b", "of c"] && table.content.isComplete)
        deadvertise("c")
        try join("a")
        #expect(!table.content.isComplete)
    }

    @Test func bytesOfDepartedObjectsCount() throws {
        func padded(_ id: String) -> String {
            Self.json(id, .CoatyObject, #","p":"\#(String(repeating: "p", count: 1_000))""#)
        }
        let size = padded("x").utf8.count + 1
        limit(bytes: 3 * size + Self.json("a", .Identity).utf8.count + 1)
        try join("a")
        for id in ["x", "y"] { try receive(padded(id), from: "a") }
        deadvertise("a")
        for id in ["1", "2", "3"] { try receive(padded(id), from: "b") }
        #expect(ids == ["1", "2", "3"] && table.content.isComplete, "x and y were evicted")
        deadvertise("1", "2", "3")
        try join("a")
        #expect(ids == ["a"] && !table.content.isComplete)
    }

    @Test func objectsAreRememberedAsLongAsTheirAgent() throws {
        for agent in ["a", "b"] {
            try join(agent)
            try receive(Self.json("of " + agent), from: agent)
            deadvertise(agent)
        }
        for number in 0..<(Limits().departedAgents - 1) {
            try join("\(number)")
            deadvertise("\(number)")
        }
        try join("b")
        #expect(ids == ["b", "of b"] && table.content.isComplete)
        try join("a")
        #expect(ids == ["a", "b", "of b"] && !table.content.isComplete)
    }

    @Test func aLargerVersionIsNeitherListedNorRemembered() throws {
        try join("a")
        try receive(Self.json("x"), from: "a")
        deadvertise("a")
        let large = #","p":"\#(String(repeating: "p", count: Limits().objectSize))""#
        try receive(Self.json("x", .CoatyObject, large), from: "a")
        try join("a")
        #expect(ids == ["a"] && !table.content.isComplete)
    }
}
