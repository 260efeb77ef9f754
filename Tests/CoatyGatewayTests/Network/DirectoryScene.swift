import Coaty
import Foundation
import Synchronization
import Testing
import TestSupport

@testable import CoatyTestSupport
@testable import Network

/// A directory of IO contexts on an in-memory broker, and the events that other agents publish.
final class DirectoryScene: Sendable {
    /// The id of a router.
    static let agent = CoatyUUID()
    /// The id of the agent that owns all IO nodes.
    static let nodeOwner = CoatyUUID()
    /// The id of a context that the gateway routes.
    static let hosted = CoatyUUID()

    let clock = SteeredClock()
    let manager: CommunicationManager
    let directory: ContextDirectory
    /// The agents that were reported as other routers of the hosted context.
    let reportedRouters: Log
    private let broker: TopicBroker

    final class Log: Sendable {
        private let entries = Mutex<[CoatyUUID]>([])

        func withLock<Result: Sendable>(_ body: (inout [CoatyUUID]) -> Result) -> Result {
            entries.withLock { body(&$0) }
        }
    }

    init() throws {
        let (broker, reportedRouters) = (TopicBroker(), Log())
        (self.broker, self.reportedRouters) = (broker, reportedRouters)
        manager = try CommunicationManager(
            identity: Identity(name: "gateway"),
            options: CommunicationOptions { _ in TopicBinding(broker: broker) }
        )
        directory = ContextDirectory(manager: manager, hosted: [Self.hosted], feed: RoutingFeed(), clock: clock) {
            _,
            router in reportedRouters.withLock { $0.append(router) }
        }
    }

    /// Runs a test between the directory's start and stop.
    func run(_ body: () async throws -> Void) async throws {
        let looking = directory.start()
        manager.start()
        defer { looking.cancel() }
        try await untilTrue("the directory asks") { question != nil }
        try await body()
        await manager.stop()
    }

    /// Interrupts the gateway's connection, and returns when it is restored and the directory has sent another Discover
    /// event.
    func reconnect() async throws {
        let before = question
        broker.setAvailable(false)
        try await untilTrue("the connection is lost") { !manager.isOnline }
        broker.setAvailable(true)
        try await untilTrue("the directory asks again") { question != before }
    }

    /// Waits until the directory has begun to wait for a confirmation. What is confirmed before is not waited for.
    func untilConfirmationRuns() async throws {
        try await untilTrue("the confirmation time runs") { clock.sleepers > 0 }
    }

    /// Advances the clock by the confirmation time.
    ///
    /// - Parameter isAwaited: whether the directory has something to confirm.
    func endConfirmation(isAwaited: Bool = true) async throws {
        guard isAwaited else {
            try await untilDelivered()
            return clock.advance(by: ContextDirectory.confirmationTime)
        }
        try await untilConfirmationRuns()
        clock.advance(by: ContextDirectory.confirmationTime)
        try await untilTrue("the confirmation time has passed") { clock.sleepers == 0 }
    }

    /// Waits until the directory has processed all events published so far.
    func untilDelivered() async throws {
        let marker = CoatyUUID()
        let agent = CoatyUUID()
        advertise(marker, by: agent)
        try await untilTrue("the marker has arrived") { directory.contains(marker) }
        deadvertise([agent], by: agent)
        try await untilTrue("the marker is gone") { !directory.contains(marker) }
    }

    /// The correlation id of the latest Discover event.
    private var question: Substring? {
        broker.published.last { $0.topic.contains("/DSC/") }?.topic.split(separator: "/").last
    }

    // MARK: - Events of other agents

    private func publish(_ topic: String, _ payload: String) {
        broker.publish(topic: "coaty/3/-/" + topic, payload: Array(payload.utf8))
    }

    private static func object(_ type: CoreType, _ id: CoatyUUID, _ name: String, _ members: String) -> String {
        #"{"object":{"coreType":"\#(type)","objectType":"coaty.\#(type)","objectId":"\#(id)","name":"\#(name)"\#(members)}}"#
    }

    func advertise(_ id: CoatyUUID, by agent: CoatyUUID = agent, members: String = "") {
        publish("ADV:IoContext/\(agent)", Self.object(.IoContext, id, "c", members))
    }

    /// Responds to the latest Discover event with a context.
    func resolve(_ id: CoatyUUID, by agent: CoatyUUID, parent: CoatyUUID, members: String = "") throws {
        let correlation = try #require(question)
        let members = #","parentObjectId":"\#(parent)"\#(members)"#
        publish("RSV/\(agent)/\(correlation)", Self.object(.IoContext, id, "c", members))
    }

    func advertiseNode(
        _ id: CoatyUUID,
        in context: String = "c",
        sources: [CoatyUUID] = [],
        actors: [CoatyUUID]? = nil
    ) {
        func points(_ type: CoreType, _ ids: [CoatyUUID]) -> String {
            ids.map {
                #"{"coreType":"\#(type)","objectType":"coaty.\#(type)","objectId":"\#($0)","name":"p","valueType":"v"}"#
            }
            .joined(separator: ",")
        }
        let actors = actors ?? (sources.isEmpty ? [CoatyUUID()] : [])
        let members =
            #","parentObjectId":"\#(Self.nodeOwner)","ioSources":[\#(points(.IoSource, sources))],"#
            + #""ioActors":[\#(points(.IoActor, actors))]"#
        publish("ADV:IoNode/\(Self.nodeOwner)", Self.object(.IoNode, id, context, members))
    }

    func associate(_ source: CoatyUUID, _ actor: CoatyUUID, by router: CoatyUUID = agent, rate: Int? = nil) {
        let rate = rate.map { #","updateRate":\#($0)"# } ?? ""
        publish(
            "ASC:c/\(router)",
            #"{"ioSourceId":"\#(source)","ioActorId":"\#(actor)","associatingRoute":"r"\#(rate)}"#
        )
    }

    func dissociate(_ source: CoatyUUID, _ actor: CoatyUUID, by router: CoatyUUID = agent) {
        publish("ASC:c/\(router)", #"{"ioSourceId":"\#(source)","ioActorId":"\#(actor)"}"#)
    }

    func deadvertise(_ ids: [CoatyUUID], by agent: CoatyUUID = agent) {
        let list = ids.map { #""\#($0)""# }.joined(separator: ",")
        publish("DAD/\(agent)", #"{"objectIds":[\#(list)]}"#)
    }
}
