import Coaty
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CoatyGateway

@testable import CoatyTestSupport

/// What others show of their contexts, at a broker in memory.
@Suite struct ContextDirectoryTests {
    private static let agent = CoatyUUID()
    private static let hosted = CoatyUUID()

    private let clock = SteeredClock()
    private let broker = TopicBroker()
    private let manager: CommunicationManager
    private let directory: ContextDirectory
    private let found: FoundRouters

    private final class FoundRouters: Sendable {
        let list = Mutex<[CoatyUUID]>([])
    }

    init() throws {
        let found = FoundRouters()
        self.found = found
        manager = try CommunicationManager(
            identity: Identity(name: "gateway"),
            options: CommunicationOptions { [broker] _ in TopicBinding(broker: broker) }
        )
        directory = ContextDirectory(manager: manager, hosted: [Self.hosted], feed: RoutingFeed(), clock: clock) {
            _,
            router in found.list.withLock { $0.append(router) }
        }
    }

    private func joined(_ body: () async throws -> Void) async throws {
        let looking = directory.start()
        manager.start()
        defer { looking.cancel() }
        try await untilTrue("it asks") { question != nil }
        try await body()
        await manager.stop()
    }

    /// The correlation id of the latest Discover.
    private var question: Substring? {
        broker.published.last { $0.topic.contains("/DSC/") }?.topic.split(separator: "/").last
    }

    private func publish(_ topic: String, _ payload: String) {
        broker.publish(topic: "coaty/3/-/" + topic, payload: Array(payload.utf8))
    }

    private static func object(_ type: CoreType, _ id: CoatyUUID, _ name: String, _ members: String = "") -> String {
        #"{"object":{"coreType":"\#(type)","objectType":"coaty.\#(type)","objectId":"\#(id)","name":"\#(name)"\#(members)}}"#
    }

    private func advertise(_ id: CoatyUUID, by agent: CoatyUUID = agent) {
        publish("ADV:IoContext/\(agent)", Self.object(.IoContext, id, "c"))
    }

    private func advertiseNode(_ id: CoatyUUID, in context: String = "c") {
        let actor = #"{"coreType":"IoActor","objectType":"t","objectId":"\#(CoatyUUID())","name":"a","valueType":"v"}"#
        publish(
            "ADV:IoNode/\(Self.agent)",
            Self.object(.IoNode, id, context, #","ioSources":[],"ioActors":[\#(actor)]"#)
        )
    }

    private func tell(_ source: CoatyUUID, _ actor: CoatyUUID, _ members: String = "") {
        publish("ASC:c/\(Self.agent)", #"{"ioSourceId":"\#(source)","ioActorId":"\#(actor)"\#(members)}"#)
    }

    @Test func nodesAndAssociationsStandInTheOrderInWhichTheyCame() async throws {
        try await joined {
            let id = CoatyUUID()
            advertise(id)
            try await untilTrue("the context is known") { directory.contains(id) }
            let nodes = (0..<20).map { _ in CoatyUUID() }
            for node in nodes { advertiseNode(node) }
            let pairs = (0..<20).map { _ in (CoatyUUID(), CoatyUUID()) }
            for (source, actor) in pairs { tell(source, actor, #","associatingRoute":"r""#) }
            // Another rate is no new place, a dissolution and another context are.
            tell(pairs[3].0, pairs[3].1, #","associatingRoute":"r","updateRate":7"#)
            tell(pairs[4].0, pairs[4].1)
            advertiseNode(nodes[5], in: "other")
            advertiseNode(nodes[6])
            try await untilTrue("all is known") {
                directory.entry(id)?.nodes.count == 19 && directory.entry(id)?.associations.count == 19
                    && directory.entry(id)?.associations[3].updateRate == 7
            }
            let entry = try #require(directory.entry(id))
            #expect(entry.nodes.map { $0["objectId"]?.string } == (nodes[..<5] + nodes[6...]).map(\.string))
            #expect(entry.associations.map(\.ioSourceId) == (pairs[..<4] + pairs[5...]).map(\.0))
            publish("DAD/\(Self.agent)", #"{"objectIds":["\#(nodes[0])","\#(id)"]}"#)
            try await untilTrue("it is gone") { !directory.contains(id) }
            #expect(directory.entries.isEmpty)
        }
    }

    @Test func whatDoesNotShowItselfAfterAReconnectIsGone() async throws {
        try await joined {
            let (gone, back, node) = (CoatyUUID(), CoatyUUID(), CoatyUUID())
            for id in [gone, back] { advertise(id) }
            advertiseNode(node)
            try await untilTrue("all are known") {
                directory.entry(gone)?.nodes.count == 1 && directory.contains(back)
            }
            try await untilTrue("the first connect is timed") { clock.sleepers == 1 }
            let before = question
            broker.setAvailable(false)
            try await untilTrue("the link is lost") { !manager.isOnline }
            broker.setAvailable(true)
            try await untilTrue("it asks again") { question != before }
            #expect(directory.entries.count == 2)
            publish("ADV:IoContext/\(Self.agent)", Self.object(.IoContext, back, "c", #","x":1"#))
            try await untilTrue("one is back") { directory.json(back)?["x"] != nil }
            try await untilTrue("the time for it runs") { clock.sleepers == 1 }
            clock.advance(by: ContextDirectory.confirmationTime)
            try await untilTrue("the other one is gone") { !directory.contains(gone) }
            #expect(directory.entry(back)?.nodes.isEmpty == true)
        }
    }

    @Test func anotherRouterIsFoundOnceAndByItsAnswerAlone() async throws {
        try await joined {
            let other = CoatyUUID()
            for _ in 0..<10 { advertise(Self.hosted, by: CoatyUUID()) }
            let correlation = try #require(question)
            for _ in 0..<10 {
                publish("RSV/\(other)/\(correlation)", Self.object(.IoContext, Self.hosted, "c"))
            }
            let last = CoatyUUID()
            advertise(last)
            try await untilTrue("all has come") { directory.contains(last) }
            #expect(found.list.withLock(\.self) == [other])
            #expect(!directory.contains(Self.hosted))
        }
    }
}
