import Coaty
import CoatyMQTT
import TestSupport
import Testing

@testable import CoatyTestSupport

/// The examples of the chapter "IO Routing": its objects, and the IO points of an agent. The test publishes the events
/// of the router.
@Suite(.exclusive) struct IORoutingTests {
    @Test @ControllerActor func exchangesTheContext() async throws {
        let network = try GuideNetwork()
        let agent = try network.agent(objectTypes: [TemperatureIoContext.self])
        let events = agent.communicationManager.observeAdvertise(withCoreType: .IoContext)
        try await network.join(agent)
        let ioContext = TemperatureIoContext(
            coreType: .IoContext,
            objectType: "coaty.TemperatureIoContext",
            objectId: try #require(CoatyUUID(uuidString: "b61740a6-95d7-4d1a-8be5-53f3aa1e0b79")),
            name: "TemperatureMeasurement",
            operatingState: "normal"
        )
        try agent.communicationManager.publishAdvertise(.with(object: ioContext))
        let received = try #require(try await first(of: events).data.object as? TemperatureIoContext)
        #expect(received.operatingState == "normal")
        #expect(received.objectId.string == "b61740a6-95d7-4d1a-8be5-53f3aa1e0b79")
        await network.end(agent)
    }

    @Test @ControllerActor func routesValuesFromASourceToAnActor() async throws {
        let network = try GuideNetwork()
        let router = try network.agent()
        let nodes = router.communicationManager.observeAdvertise(withCoreType: .IoNode)

        // Initialize IoSource for .None Strategy.
        // This strategy simply publishes all values as they are being sent.
        let source1 = IoSource(
            valueType: "coaty.test.Temperature[Celsius]",
            updateStrategy: .None,
            name: "Temperature Source 1",
            objectType: CoreType.IoSource.objectType,
            objectId: try #require(CoatyUUID(uuidString: "c547e5cd-ef99-4ccd-b109-fc472fc2d421"))
        )
        // .Sample: the most recent values within periodic time intervals.
        let source2 = IoSource(
            valueType: "coaty.test.Temperature[Celsius]",
            updateStrategy: .Sample,
            updateRate: 5000,
            name: "Temperature Source 2"
        )
        // .Throttle: only once a timespan has passed without another value.
        let source3 = IoSource(
            valueType: "coaty.test.Temperature[Celsius]",
            updateStrategy: .Throttle,
            updateRate: 5000,
            name: "Temperature Source 3"
        )
        let sources = try agent(network, IoNodeDefinition(ioSources: [source1, source2, source3]))

        let actor1 = IoActor(
            valueType: "coaty.test.Temperature[Celsius]",
            updateRate: 5000,
            name: "Temperature Actor 1",
            objectType: CoreType.IoActor.objectType,
            objectId: try #require(CoatyUUID(uuidString: "a731fc40-c0f8-486f-b5b6-b653c3cabaea"))
        )
        let actors = try agent(
            network,
            IoNodeDefinition(ioActors: [actor1], characteristics: ["isResponsibleForOperatingState": "normal"])
        )
        let values = actors.communicationManager.observeIoValue(ioActor: actor1)
        try await network.join(router, sources, actors)

        let advertised = try await withPatience {
            var names: [[String]] = []
            for await event in nodes.prefix(2) {
                guard let node = try event.data.object as? IoNode else { throw TimedOut() }
                names.append([node.name] + (node.ioSources + node.ioActors).map(\.name))
            }
            return names
        }
        #expect(
            advertised == [
                ["TemperatureMeasurement", "Temperature Source 1", "Temperature Source 2", "Temperature Source 3"],
                ["TemperatureMeasurement", "Temperature Actor 1"],
            ]
        )

        let manager = sources.communicationManager
        #expect(try manager.publishIoValue(.with(ioSource: source1, value: 20.5)) == nil, "no actor is associated yet")
        try router.communicationManager.publishAssociate(
            .with(
                ioContextName: "TemperatureMeasurement",
                ioSourceId: source1.objectId,
                ioActorId: actor1.objectId,
                associatingRoute: "temperatures/1",
                updateRate: 5000
            )
        )
        let state = manager.observeIoState(ioPoint: source1)
        let rate = try await withPatience {
            for await event in state where event.hasAssociations { return event.updateRate }
            throw TimedOut()
        }
        #expect(rate == 5000)
        let actorState = actors.communicationManager.observeIoState(ioPoint: actor1)
        try await withPatience {
            for await event in actorState where event.hasAssociations { return }
            throw TimedOut()
        }
        // The actor reports its association when its subscription has been sent, not when the broker has accepted it.
        let publishing = Task {
            while true {
                try manager.publishIoValue(.with(ioSource: source1, value: 21.5))
                try await Task.sleep(for: .milliseconds(1))
            }
        }
        #expect(try await first(of: values).value == 21.5)
        publishing.cancel()
        await network.end(router, sources, actors)
    }

    @Test(.timeLimit(.minutes(1))) @ControllerActor func ruleBasedRoutingFollowsContextChanges() async throws {
        let network = try GuideNetwork()
        let valueType = "coaty.test.Temperature[Celsius]"
        let source = IoSource(valueType: valueType, updateStrategy: .None, name: "Temperature Source 1")
        let actor1 = IoActor(valueType: valueType, updateRate: 5000, name: "Temperature Actor 1")
        let actor2 = IoActor(valueType: valueType, updateRate: 5000, name: "Temperature Actor 2")
        let (sourceId, actorId1, actorId2) = (source.objectId, actor1.objectId, actor2.objectId)
        let sources = try agent(network, IoNodeDefinition(ioSources: [source]))
        let normal = try agent(
            network,
            IoNodeDefinition(ioActors: [actor1], characteristics: ["isResponsibleForOperatingState": "normal"])
        )
        let emergency = try agent(
            network,
            IoNodeDefinition(ioActors: [actor2], characteristics: ["isResponsibleForOperatingState": "emergency"])
        )

        // Configure the rules used by the RuleBasedIoRouter.
        let condition1: IoRoutingRuleConditionFunc = {
            (source, sourceNode, actor, actorNode, context, router) -> Bool in
            guard
                let operatingStateResponsibility =
                    actorNode.characteristics?["isResponsibleForOperatingState"] as? String,
                let context = context as? TemperatureIoContext
            else { return false }
            return operatingStateResponsibility == "normal" && context.operatingState == "normal"
        }
        let condition2: IoRoutingRuleConditionFunc = {
            (source, sourceNode, actor, actorNode, context, router) -> Bool in
            guard
                let operatingStateResponsibility =
                    actorNode.characteristics?["isResponsibleForOperatingState"] as? String,
                let context = context as? TemperatureIoContext
            else { return false }
            return operatingStateResponsibility == "emergency" && context.operatingState == "emergency"
        }
        let rules: [IoAssociationRule] = [
            IoAssociationRule(
                name: "Route temperature sources to normal actors if operating state is normal",
                valueType: valueType,
                condition: condition1
            ),
            IoAssociationRule(
                name: "Route temperature sources to emergency actors if operating state is emergency",
                valueType: valueType,
                condition: condition2
            ),
        ]
        let ioContext = TemperatureIoContext(
            coreType: .IoContext,
            objectType: "coaty.TemperatureIoContext",
            objectId: .init(),
            name: "TemperatureMeasurement",
            operatingState: "normal"
        )
        // Configure the required options for a RuleBasedIoRouter
        let routerOptions = ControllerOptions(extra: ["ioContext": ioContext, "rules": rules])
        // Controller options are always mapped by the controller's name.
        let controllers = ControllerConfig(controllerOptions: ["RuleBasedIoRouter": routerOptions])
        let router = try Container.resolve(
            components: Components(
                controllers: ["RuleBasedIoRouter": RuleBasedIoRouter.self],
                objectTypes: [TemperatureIoContext.self]
            ),
            configuration: Configuration(
                communication: CommunicationOptions(
                    namespace: "com.example",
                    mqttClientOptions: network.mqttClientOptions
                ),
                controllers: controllers
            )
        )
        let observer = try network.agent(objectTypes: [TemperatureIoContext.self])
        let associates = try observer.communicationManager.observeAssociate(ioContextName: "TemperatureMeasurement")
        var associateEvents = associates.makeAsyncIterator()
        // Agents that join first are online when the router discovers them; later agents are found when they join.
        try await network.join(observer, sources, normal, router)
        let initial = try #require(await associateEvents.next(isolation: ControllerActor.shared)).data
        #expect(initial.ioSourceId == sourceId && initial.ioActorId == actorId1)
        #expect(initial.associatingRoute == "coaty/3/com.example/IOV/\(sourceId)")
        #expect(initial.updateRate == 5000)
        let nodes = observer.communicationManager.observeAdvertise(withCoreType: .IoNode)
        // The subscription is active when a later request has been answered.
        _ = try await first(
            of: observer.communicationManager.publishDiscover(.with(objectId: router.identity.objectId))
        )
        emergency.communicationManager.start()
        // The broker has delivered this node to the router before the update.
        _ = try await first(of: nodes)

        // Discover temperature measurement context from IO router
        let resolves = try observer.communicationManager
            .publishDiscover(DiscoverEvent.with(objectTypes: ["coaty.TemperatureIoContext"]))
        let discovered = try #require(try await first(of: resolves).data.object as? TemperatureIoContext)
        #expect(discovered.parentObjectId == router.identity.objectId)
        // Change context operating state to trigger rerouting from sources to emergency actors
        discovered.operatingState = "emergency"
        let completes = try observer.communicationManager.publishUpdate(UpdateEvent.with(object: discovered))
        // Updated object is returned.
        let updated = try #require(try await first(of: completes).data.object as? TemperatureIoContext)
        #expect(updated.operatingState == "emergency")
        let dissolved = try #require(await associateEvents.next(isolation: ControllerActor.shared)).data
        #expect(dissolved.ioActorId == actorId1 && dissolved.associatingRoute == nil)
        let second = try #require(await associateEvents.next(isolation: ControllerActor.shared)).data
        #expect(second.ioActorId == actorId2 && second.associatingRoute == initial.associatingRoute)

        // A leaving actor is dissociated, and all actors are dissociated when the router stops.
        await normal.shutdown()
        await router.shutdown()
        let last = try #require(await associateEvents.next(isolation: ControllerActor.shared)).data
        #expect(last.ioActorId == actorId2 && last.associatingRoute == nil)
        await network.end(sources, emergency, observer)
    }

    @ControllerActor
    private func agent(_ network: GuideNetwork, _ ioNodeDefinition: sending IoNodeDefinition) throws -> Container {
        // Configuration of an agent with an IoNode in common options
        let commonOptions = CommonOptions(
            ioContextNodes: ["TemperatureMeasurement": ioNodeDefinition],
            logLevel: .info
        )
        return try Container.resolve(
            components: Components(controllers: [:]),
            configuration: Configuration(
                common: commonOptions,
                communication: CommunicationOptions(
                    namespace: "com.example",
                    mqttClientOptions: network.mqttClientOptions
                )
            )
        )
    }
}

/// The context for IO routing, with an additional property `operatingState`.
class TemperatureIoContext: IoContext {
    var operatingState: String

    override class var objectType: String {
        return register(objectType: "coaty.TemperatureIoContext", with: self)
    }

    init(coreType: CoreType, objectType: String, objectId: CoatyUUID, name: String, operatingState: String) {
        self.operatingState = operatingState
        super.init(coreType: coreType, objectType: objectType, objectId: objectId, name: name)
    }

    enum CodingKeys: String, CodingKey {
        case operatingState
    }

    required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)

        self.operatingState = try container.decode(String.self, forKey: .operatingState)
        try super.init(from: decoder)
    }

    override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(operatingState, forKey: .operatingState)
    }
}
