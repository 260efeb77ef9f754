import Coaty
import Foundation
import Synchronization
import Testing
import TestSupport

@testable import CoatyTestSupport
@testable import Network

/// A registry on an in-memory broker, with a clock that the test controls.
@Suite(.exclusive) struct ObjectRegistryTests {
    private let clock = SteeredClock()
    private let broker = TopicBroker()
    private let manager: CommunicationManager
    private let registry: ObjectRegistry

    init() throws {
        manager = try CommunicationManager(
            identity: Identity(name: "gateway"),
            options: CommunicationOptions { [broker] _ in TopicBinding(broker: broker) }
        )
        registry = ObjectRegistry(manager: manager, clock: clock, logger: .init(label: "test"))
    }

    private func joined(_ body: () async throws -> Void) async throws {
        registry.start()
        manager.start()
        try await untilTrue("it asks") { questions.count == 1 }
        try await body()
        await manager.stop()
        registry.stop()
    }

    private var questions: [TopicBroker.Message] {
        broker.published.filter { $0.topic.contains("/DSC/") }
    }

    private func publish(_ topic: String, _ payload: String) {
        broker.publish(topic: "coaty/3/-/" + topic, payload: Array(payload.utf8))
    }

    private static func object(_ id: String, _ coreType: CoreType = .Task) -> String {
        let task = coreType == .Task ? #","creatorId":"c","creationTimestamp":1,"status":0"# : ""
        return #"{"coreType":"\#(coreType)","objectType":"t","objectId":"\#(id)","name":"n"\#(task)}"#
    }

    private func advertise(_ id: String, _ coreType: CoreType = .Task, by agent: String) {
        publish("ADV:\(coreType)/\(agent)", #"{"object":\#(Self.object(id, coreType))}"#)
    }

    private func contains(_ id: String) -> Bool { registry.object(CoatyUUID(wire: id)) != nil }

    @Test func discoversAllCoreTypesExceptLog() async throws {
        try await joined {
            let question = try #require(questions.first)
            let asked = try Payload(question.payload).json["coreTypes"]?.elements.compactMap(\.string)
            #expect(Set(asked ?? []) == Set(CoreType.allCases.map(\.rawValue)).subtracting(["Log"]))
            try await untilTrue("its own identity is known") { contains(manager.identityId.string) }
            let correlationId = try #require(question.topic.split(separator: "/").last)
            let related = [Self.object("x"), Self.object("y", .CoatyObject)].joined(separator: ",")
            publish("RSV/a/\(correlationId)", #"{"object":\#(Self.object("z")),"relatedObjects":[\#(related)]}"#)
            try await untilTrue("all are known") { contains("x") && contains("y") && contains("z") }
            #expect(registry.object(CoatyUUID(wire: "x"))?.owner == CoatyUUID(wire: "a"))
            #expect(registry.object(CoatyUUID(wire: "x"))?.bytes == Array(Self.object("x").utf8))
            #expect(registry.isComplete)
        }
    }

    @Test func advertisementsOfEachCoreTypeAreReportedOnce() async throws {
        try await joined {
            try await untilTrue("its own identity is known") { contains(manager.identityId.string) }
            let names = Mutex<[String]>([])
            let known = registry.withContent { $0.listed.inOrder.map(\.objectId) }
            #expect(known == [manager.identityId])
            let end = registry.observeChanges { change in
                names.withLock { $0.append("\(change.kind) \(change.object.objectId)") }
            }
            for coreType in [CoreType.CoatyObject, .Task, .IoContext, .IoNode, .Identity] {
                advertise("o \(coreType)", coreType, by: "a")
                publish("ADV:t/a", #"{"object":\#(Self.object("o \(coreType)", coreType))}"#)
            }
            publish("DAD/b", #"{"objectIds":["o Task","a"]}"#)
            try await untilTrue("all have come and gone") { names.withLock(\.count) == 10 }
            #expect(
                names.withLock { Array($0.prefix(6)) }
                    == ["CoatyObject", "Task", "IoContext", "IoNode", "Identity"].map { "added o \($0)" }
                    + ["removed o Task"]
            )
            #expect(registry.content.listed.inOrder.map(\.objectId) == [manager.identityId])
            #expect(registry.content.agents.map(\.isOnline) == [true], "an agent shows its identity itself")
            // After `end()`, only the other handlers are called.
            let others = Mutex(0)
            let endOther = registry.observeChanges { _ in others.withLock { $0 += 1 } }
            end()
            advertise("later", by: "a")
            try await untilTrue("another handler is called") { others.withLock(\.self) == 1 }
            #expect(names.withLock(\.count) == 10)
            endOther()
        }
    }

    @Test func knownObjectsAreFoundAmongManyIds() async throws {
        try await joined {
            advertise("agent", .Identity, by: "agent")
            advertise("of agent", by: "agent")
            let child = Self.object("child").dropLast() + #","parentObjectId":"parent"}"#
            publish("ADV:Task/b", #"{"object":\#(child)}"#)
            for id in ["other", "c", "d"] { advertise(id, by: "b") }
            try await untilTrue("all are known") { contains("d") }
            var ids = (0..<1000).map { #""unknown \#($0)""# }
            ids[10] = #""parent""#
            ids[500] = #""\u0063""#
            ids[999] = #""agent""#
            let payload = #"{"objectIds":[\#(ids.joined(separator: ","))]}"#
            let known = registry.known(DeadvertiseEventData(payload: try Payload(Array(payload.utf8))))
            #expect(known.map(\.objectId.string) == ["c", "agent"])
            publish("DAD/b", payload)
            try await untilTrue("the last one is gone") { !contains("agent") }
            #expect(!contains("of agent") && !contains("child") && !contains("c"))
            #expect(contains("other") && contains("d"))
        }
    }

    @Test func objectsResolvedForClientsAreRegistered() async throws {
        try await joined {
            let answered = try DiscoverEvent(payload: Payload(Array(#"{"objectTypes":["t"]}"#.utf8)))
            let subscription = try manager.publish(answered) { [registry] in registry.note($0) }
            try await untilTrue("the client asks") { questions.count == 2 }
            let correlationId = try #require(questions.last?.topic.split(separator: "/").last)
            publish("RSV/a/\(correlationId)", #"{"object":\#(Self.object("x"))}"#)
            try await untilTrue("it is known") { contains("x") }
            subscription.cancel()
        }
    }

    @Test func silentAgentsAreRemovedAfterAReconnect() async throws {
        try await joined {
            for agent in ["silent", "advertising", "asking", "resolving", "deadvertising"] {
                advertise(agent, .Identity, by: agent)
                advertise("of " + agent, by: agent)
            }
            try await untilTrue("all are known") { registry.content.listed.count == 11 }
            try await reconnect()
            #expect(registry.content.listed.count == 11)
            advertise("new", by: "advertising")
            publish("DSC/asking/1", #"{"coreTypes":["User"]}"#)
            let correlationId =
                try #require(questions.last { $0.topic.contains(manager.identityId.string) }?.topic)
                .split(separator: "/").last ?? ""
            publish("RSV/resolving/\(correlationId)", #"{"object":\#(Self.object("found"))}"#)
            publish("DAD/deadvertising", #"{"objectIds":["other"]}"#)
            advertise("last", by: "another")
            try await untilTrue("they have shown themselves") { contains("found") && contains("last") }

            // No agent can show itself while the session is offline, so the time starts again.
            try await reconnect()
            for agent in ["advertising", "asking", "resolving", "deadvertising", "another"] {
                publish("DSC/\(agent)/1", #"{"coreTypes":["User"]}"#)
            }
            advertise("marker", by: "another")
            try await untilTrue("they have shown themselves again") { contains("marker") }
            clock.advance(by: ObjectRegistry.confirmationTime - .milliseconds(1))
            #expect(clock.sleepers == 1)
            #expect(contains("silent") && contains("of silent"))
            clock.advance(by: .milliseconds(1))
            try await untilTrue("the silent one is gone") { !contains("silent") }
            #expect(!contains("of silent"))
            let expected = ["advertising", "asking", "resolving", "deadvertising"].flatMap { [$0, "of " + $0] }
            #expect(expected.filter { !contains($0) } == [])
            #expect(contains("new") && contains("found") && contains("last"))
            #expect(registry.content.agents.last?.isOnline == false)

            // The agent was late, and does not advertise its objects again.
            let asked = questions.count
            advertise("silent", .Identity, by: "silent")
            try await untilTrue("the registry asks for its objects") { questions.count > asked }
            #expect(contains("of silent"))
        }
    }

    /// Interrupts the connection, and waits until the registry has noticed that it is restored.
    private func reconnect() async throws {
        let asked = questions.count
        broker.setAvailable(false)
        try await untilTrue("the link is lost") { !manager.isOnline }
        broker.setAvailable(true)
        try await untilTrue("it asks again") { questions.count > asked }
        try await untilTrue("the time for answers runs") {
            clock.deadlines == [clock.now.offsetFromBeginning + ObjectRegistry.confirmationTime]
        }
    }
}

extension SteeredClock.Instant {
    fileprivate var offsetFromBeginning: Duration { SteeredClock().now.duration(to: self) }
}
