import Coaty
import Testing

extension Pattern {
    /// IO routing in a context whose name has dots.
    static let ioRouting = [
        Pattern(name: "Associate") { route in
            try await IOScene.check(route) { _, _ in }
        },
        Pattern(name: "IoValue, internal route") { route in
            try await IOScene.check(route) { try await $0.checkValue($1) }
        },
        Pattern(name: "IoValue, external route") { route in
            try await IOScene.check(route, externalRoute: Dotted.externalRoute) { try await $0.checkValue($1) }
        },
    ]
}

/// An IO source on the sender's broker, and an IO router and an IO actor on the receiver's.
private struct IOScene {
    let sender: CommunicationManager
    let receiver: CommunicationManager
    let actorId: CoatyUUID

    /// Checks that the source and the actor are associated, and then the body.
    static func check(
        _ route: Route,
        externalRoute: String? = nil,
        _ body: (IOScene, IoSource) async throws -> Void
    ) async throws {
        let source = IoSource(valueType: "com.example.Temperature", externalRoute: externalRoute, name: "source")
        let actor = IoActor(valueType: "com.example.Temperature", name: "actor")
        let scene = IOScene(
            sender: try makeAgent(route.senderOptions, ioNodes: [IoNode(name: Dotted.context, ioSources: [source])]),
            receiver: try makeAgent(route.receiverOptions, ioNodes: [IoNode(name: Dotted.context, ioActors: [actor])]),
            actorId: actor.objectId
        )
        let router = try await startRouter(route.receiverOptions)
        do {
            try await scene.checkAssociation(source.objectId)
            try await body(scene, source)
        } catch {
            await scene.end(router)
            throw error
        }
        await scene.end(router)
    }

    private func checkAssociation(_ sourceId: CoatyUUID) async throws {
        let states = [ReceivedValues<Bool>(), ReceivedValues<Bool>()]
        let names = ReceivedValues<String>()
        let subscriptions = [
            sender.subscribe(ioStateOf: sourceId) { states[0].append($0.hasAssociations) },
            receiver.subscribe(ioStateOf: actorId) { states[1].append($0.hasAssociations) },
            sender.subscribe(try .associate(ioContextName: Dotted.context)) { names.append($0.ioContextName) },
        ]
        sender.start()
        receiver.start()
        try await eventually("both are associated", within: 10) {
            states.allSatisfy { $0.values.last == true } && names.count > 0
        }
        #expect(Set(names.values) == [Dotted.context])
        for subscription in subscriptions { subscription.cancel() }
    }

    /// Checks that a value of the source reaches the actor.
    func checkValue(_ source: IoSource) async throws {
        let received = ReceivedValues<AnyCodable?>()
        let subscription = receiver.subscribe(ioValuesOf: actorId) { received.append($0.value) }
        // An association is reported before the broker has the subscription to its route, so publish values repeatedly.
        try await eventually("a value arrives", within: 10) {
            try sender.publishIoValue(.with(ioSource: source, value: AnyCodable(21.5)))
            return received.count > 0
        }
        #expect(received.values.first == AnyCodable(21.5))
        subscription.cancel()
    }

    private func end(_ router: Container) async {
        await sender.stop()
        await receiver.stop()
        await router.shutdown()
    }

    @ControllerActor private static func startRouter(_ options: CommunicationOptions) throws -> Container {
        let context = IoContext(
            coreType: .IoContext,
            objectType: CoreType.IoContext.objectType,
            objectId: .init(),
            name: Dotted.context
        )
        let container = try Container.resolve(
            components: Components(controllers: ["router": BasicIoRouter.self]),
            configuration: Configuration(
                communication: options,
                controllers: ControllerConfig(controllerOptions: [
                    "router": ControllerOptions(extra: ["ioContext": context])
                ])
            )
        )
        container.communicationManager.start()
        return container
    }
}
