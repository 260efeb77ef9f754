import CoatyMQTT
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

@ControllerActor @Suite(.exclusive, .timeLimit(.minutes(1))) struct IoPointControllersTests {
    /// An agent with both controllers on an in-memory broker.
    private struct Agent {
        let container: Container
        let sources: IoSourceController
        let actors: IoActorController

        @ControllerActor
        init(
            _ nodes: sending [String: IoNodeDefinition],
            binding: @escaping @Sendable () throws -> any Binding
        ) throws {
            container = try Container.resolve(
                components: Components(controllers: [
                    "Sources": IoSourceController.self, "Actors": IoActorController.self,
                ]),
                configuration: Configuration(
                    common: CommonOptions(ioContextNodes: nodes),
                    communication: CommunicationOptions { _ in try binding() }
                )
            )
            sources = try #require(container.getController(name: "Sources"))
            actors = try #require(container.getController(name: "Actors"))
        }

        func join() async throws {
            container.communicationManager.start()
            try await container.communicationManager.untilOnline()
        }
    }

    /// Publishes an Associate event in the name of a router.
    private func associate(
        _ source: IoSource,
        _ actor: IoActor,
        in context: String = "context",
        route: String?,
        updateRate: Int? = nil,
        by agent: Agent
    ) throws {
        try agent.container.communicationManager.publishAssociate(
            .with(
                ioContextName: context,
                ioSourceId: source.objectId,
                ioActorId: actor.objectId,
                associatingRoute: route,
                updateRate: updateRate
            )
        )
    }

    private func untilAssociated(_ states: AsyncStream<Bool>) async throws {
        try await withPatience {
            for await isAssociated in states where isAssociated { return }
            throw TimedOut()
        }
    }

    private func record<Values: AsyncSequence & Sendable>(
        _ values: Values,
        in bag: DisposeBag
    ) -> Recorder<Values.Element> where Values.Failure == Never, Values.Element: Sendable {
        let recorder = Recorder<Values.Element>()
        Task { for await value in values { recorder.append(value) } }.disposed(by: bag)
        return recorder
    }

    @Test func valuesArriveAndLatestOutlivesAssociations() async throws {
        let broker = TopicBroker()
        let source = IoSource(valueType: "v", updateStrategy: .None, name: "source")
        let actor = IoActor(valueType: "v", name: "actor")
        let agent = try Agent(["context": IoNodeDefinition(ioSources: [source], ioActors: [actor])]) {
            TopicBinding(broker: broker)
        }
        let bag = DisposeBag()
        let rates = record(agent.sources.observeUpdateRate(source: source), in: bag)
        let sourceStates = record(agent.sources.observeAssociation(source: source), in: bag)
        let actorStates = record(agent.actors.observeAssociation(actor: actor), in: bag)
        let values = record(agent.actors.observeIoValue(actor: actor), in: bag)
        #expect(try await values.wait(for: 1) == [nil])
        #expect(agent.actors.getIoValue(actor: actor) == nil)
        #expect(try await rates.wait(for: 1) == [nil])
        #expect(try await sourceStates.wait(for: 1) == [false])
        #expect(try await actorStates.wait(for: 1) == [false])
        try await agent.join()
        #expect(try agent.sources.publish(source: source, value: 1) == .discarded)

        let route = "coaty/3/-/IOV/\(source.objectId)"
        try associate(source, actor, route: route, updateRate: 50, by: agent)
        #expect(try await sourceStates.wait(for: 2) == [false, true])
        #expect(try await actorStates.wait(for: 2) == [false, true])
        #expect(try await rates.wait(for: 2) == [nil, 50])
        #expect(agent.sources.isAssociated(source: source) && agent.actors.isAssociated(actor: actor))
        // The session first subscribes for the actor, then publishes the values.
        for value in [2, 3, 3] as [AnyCodable] {
            #expect(try agent.sources.publish(source: source, value: value) == .published(.sent))
        }
        #expect(try await values.wait(for: 4) == [nil, 2, 3, 3])
        #expect(agent.actors.getIoValue(actor: actor) == 3)

        try associate(source, actor, route: nil, by: agent)
        #expect(try await actorStates.wait(for: 3) == [false, true, false])
        #expect(try await rates.wait(for: 3) == [nil, 50, nil])
        #expect(agent.actors.getIoValue(actor: actor) == 3)
        #expect(try agent.sources.publish(source: source, value: 4) == .discarded)
        try associate(source, actor, route: route, by: agent)
        #expect(try await actorStates.wait(for: 4) == [false, true, false, true])
        let late = record(agent.actors.observeIoValue(actor: actor), in: bag)
        #expect(try await late.wait(for: 1) == [3])
        #expect(try agent.sources.publish(source: source, value: .null) == .published(.sent))
        #expect(try await values.wait(for: 5) == [nil, 2, 3, 3, .null])
        await agent.container.shutdown()
    }

    @Test func observationsSurviveRestartAndEndWithContainer() async throws {
        let broker = TopicBroker()
        let source = IoSource(valueType: "v", name: "source")
        let actor = IoActor(valueType: "v", name: "actor")
        let agent = try Agent(["context": IoNodeDefinition(ioSources: [source], ioActors: [actor])]) {
            TopicBinding(broker: broker)
        }
        let bag = DisposeBag()
        let states = record(agent.sources.observeAssociation(source: source), in: bag)
        let values = agent.actors.observeIoValue(actor: actor)
        let seen = Recorder<AnyCodable?>()
        let reading = Task { for await value in values { seen.append(value) } }
        try await agent.join()
        for value in [1, 2] as [AnyCodable] {
            try associate(source, actor, route: "external/values", by: agent)
            try await untilAssociated(agent.sources.observeAssociation(source: source))
            try agent.sources.publish(source: source, value: value)
            _ = try await seen.wait(for: value == 1 ? 2 : 3)
            await agent.container.communicationManager.stop()
            #expect(!agent.sources.isAssociated(source: source))
            #expect(!agent.actors.isAssociated(actor: actor))
            #expect(agent.actors.getIoValue(actor: actor) == value)
            #expect(try agent.sources.publish(source: source, value: 9) == .discarded)
            try await agent.join()
        }
        #expect(seen.values == [nil, 1, 2])
        #expect(try await states.wait(for: 5) == [false, true, false, true, false])
        await agent.container.shutdown()
        try await withPatience { await reading.value }
    }

    @Test func rawValuesAreDeliveredAsBytes() async throws {
        let broker = TopicBroker()
        let source = IoSource(valueType: "v", useRawIoValues: true, name: "source")
        let actor = IoActor(valueType: "v", useRawIoValues: true, name: "actor")
        let agent = try Agent(["context": IoNodeDefinition(ioSources: [source], ioActors: [actor])]) {
            TopicBinding(broker: broker)
        }
        let bag = DisposeBag()
        let values = record(agent.actors.observeRawIoValue(actor: actor), in: bag)
        try await agent.join()
        // A value on an external route does not identify its source.
        try associate(source, actor, route: "external/values", by: agent)
        try await untilAssociated(agent.actors.observeAssociation(actor: actor))
        #expect(try agent.sources.publish(source: source, value: [0, 255] as [UInt8]) == .published(.sent))
        #expect(throws: CommunicationError.incompatibleIoValue) {
            try agent.sources.publish(source: source, value: 1 as AnyCodable)
        }
        #expect(try await values.wait(for: 2) == [nil, [0, 255]])
        #expect(agent.actors.getRawIoValue(actor: actor) == [0, 255])
        #expect(agent.actors.getIoValue(actor: actor) == nil)
        #expect(broker.published.last?.topic == "external/values")
        await agent.container.shutdown()
    }

    @Test func latestValueHasItsTimeOfReceipt() async throws {
        let broker = TopicBroker()
        let actor = IoActor(valueType: "v", name: "actor")
        let manager = try CommunicationManager(
            identity: Identity(name: "agent"),
            ioNodes: [IoNode(name: "context", ioActors: [actor])],
            options: CommunicationOptions { _ in TopicBinding(broker: broker) }
        )
        let latest = LatestIoValue(ioActor: actor, communicationManager: manager)
        #expect(latest.received == nil)
        let before = CoatyTimestamp.nowMillis()
        manager.start()
        try await manager.untilOnline()
        let sourceId = CoatyUUID()
        try manager.publishAssociate(
            .with(
                ioContextName: "context",
                ioSourceId: sourceId,
                ioActorId: actor.objectId,
                associatingRoute: "coaty/3/-/IOV/\(sourceId)"
            )
        )
        let states = manager.observeIoState(ioPoint: actor)
        try await withPatience {
            for await state in states where state.hasAssociations { return }
            throw TimedOut()
        }
        let stream = latest.stream()
        broker.publish(topic: "coaty/3/-/IOV/\(sourceId)", payload: Array("1.50".utf8))
        let received = try await withPatience {
            for await case let received? in stream { return received }
            throw TimedOut()
        }
        #expect(received.event.bytes == Array("1.50".utf8))
        #expect(received.event.ioSourceId == sourceId)
        #expect(received.receptionTime >= before)
        await manager.stop()
        #expect(latest.received?.event.value == 1.5)
    }

    @Test func agentWithNodesInTwoContextsWorksOverMQTT() async throws {
        let broker = try BrokerProcess()
        let sources = (1...2).map { IoSource(valueType: "v", name: "source \($0)") }
        let actors = (1...2).map { IoActor(valueType: "v", name: "actor \($0)") }
        let port = broker.port
        let agent = try Agent([
            "context 1": IoNodeDefinition(ioSources: [sources[0]], ioActors: [actors[0]]),
            "context 2": IoNodeDefinition(ioSources: [sources[1]], ioActors: [actors[1]]),
        ]) { try MQTTBinding(options: MQTTClientOptions(host: "127.0.0.1", port: port)) }
        let bag = DisposeBag()
        let values = actors.map { record(agent.actors.observeIoValue(actor: $0), in: bag) }
        let states = actors.map { record(agent.actors.observeAssociation(actor: $0), in: bag) }
        try await agent.join()
        for index in 0..<2 {
            try associate(
                sources[index],
                actors[index],
                in: "context \(index + 1)",
                route: "coaty/3/-/IOV/\(sources[index].objectId)",
                by: agent
            )
            _ = try await states[index].wait(for: 2)
        }
        // A session sends a value after all subscriptions that were requested before.
        try agent.sources.publish(source: sources[0], value: "one")
        try agent.sources.publish(source: sources[1], value: "two")
        #expect(try await values[0].wait(for: 2) == [nil, "one"])
        #expect(try await values[1].wait(for: 2) == [nil, "two"])
        try associate(sources[0], actors[0], in: "context 1", route: nil, by: agent)
        #expect(try await states[0].wait(for: 3) == [false, true, false])
        #expect(agent.actors.isAssociated(actor: actors[1]))
        #expect(try agent.sources.publish(source: sources[0], value: "three") == .discarded)
        await agent.container.shutdown()
        broker.stop()
    }
}
