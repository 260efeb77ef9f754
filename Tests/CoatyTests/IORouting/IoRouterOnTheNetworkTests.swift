import CoatyMQTT
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Responses of a router, and its reactions to events and lost connections.
@ControllerActor @Suite(.exclusive, .timeLimit(.minutes(1))) struct IoRouterOnTheNetworkTests {
    private typealias Scene = RouterScene<BasicIoRouter>

    @Test func discoverOfItsContextIsAnswered() async throws {
        let scene = try await Scene()
        let asked: [(event: DiscoverEvent, isAnswered: Bool)] = [
            (try .with(coreTypes: [.IoContext, .User]), true),
            (try .with(objectTypes: ["com.example.Context"]), true),
            (try .with(objectId: "ctx-id"), true),
            (try .with(coreTypes: [.IoNode]), false),
            (try .with(objectTypes: ["com.example.Other"]), false),
            (try .with(objectId: "another-id"), false),
            (try .with(externalId: "ctx-id", coreTypes: [.IoContext]), false),
        ]
        for (event, isAnswered) in asked {
            let answers = Recorder<ResolveEvent>()
            let request = try scene.others.publish(event) { answers.append($0) }
            // The router responds to this request after the earlier ones.
            let own = Recorder<ResolveEvent>()
            let last = try scene.others.publish(DiscoverEvent.with(objectId: scene.id)) { own.append($0) }
            _ = try await own.wait(for: 1)
            #expect(answers.values.count == (isAnswered ? 1 : 0), "\(event.payload)")
            if isAnswered {
                let context = try #require(answers.values.first?.data.object as? IoContext)
                #expect(context.objectId == "ctx-id" && context.parentObjectId == scene.id)
            }
            request.cancel()
            last.cancel()
        }
        await scene.end()
    }

    @Test func updateToAnotherContextIsIgnored() async throws {
        var scene = try await Scene()
        let completes = Recorder<CompleteEvent>()
        let requests = try [
            IoContext.test(name: "another"), IoContext.test(name: "ctx", id: "another-id"),
        ].map { context in try scene.others.publish(UpdateEvent.with(object: context)) { completes.append($0) } }
        #expect(try await scene.news() == [])
        #expect(completes.values.isEmpty)
        #expect(scene.router.ioContext?.name == "ctx" && scene.router.ioContext?.objectId == "ctx-id")
        for request in requests { request.cancel() }
        await scene.end()
    }

    @Test func noticesOtherRoutersOfItsContext() async throws {
        var scene = try await Scene()
        func from(_ agent: String, _ event: String, _ payload: String) {
            scene.broker.publish(topic: "coaty/3/-/\(event)/\(agent)", payload: Array(payload.utf8))
        }
        let context = { (id: String, name: String) in
            #"{"object":{"objectId":"\#(id)","coreType":"IoContext","objectType":"coaty.IoContext","name":"\#(name)"}}"#
        }
        from("r1", "ADV:IoContext", context("another-id", "ctx"))
        from("r2", "ADV:IoContext", context("ctx-id", "another"))
        from("r3", "ADV:IoContext", context("another-id", "another"))
        from("r4", "ASC:ctx", #"{"ioSourceId":"s","ioActorId":"a"}"#)
        from("r5", "ASC:another", #"{"ioSourceId":"s","ioActorId":"a"}"#)
        from("r4", "ASC:ctx", #"{"ioSourceId":"s","ioActorId":"b"}"#)
        _ = try await scene.news()
        #expect(scene.router.otherRouters == ["r1", "r2", "r4"])
        from("r1", "DAD", #"{"objectIds":["r1","ctx-id"]}"#)
        _ = try await scene.news()
        #expect(scene.router.otherRouters == ["r2", "r4"])
        from("r1", "ASC:ctx", #"{"ioSourceId":"s","ioActorId":"b"}"#)
        _ = try await scene.news()
        #expect(scene.router.otherRouters == ["r2", "r4", "r1"])
        await scene.end()
        #expect(scene.router.otherRouters.isEmpty)
    }

    @Test func associationsAreDissolvedOnTheBrokerBeforeLeaving() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let options = MQTTClientOptions(host: "127.0.0.1", port: broker.port)
        let rules = #"[{"name": "All", "condition": ["source.name", ["Exists"]]}]"#
        let container = try Container.resolve(
            components: Components(controllers: ["router": RuleBasedIoRouter.self]),
            configuration: Configuration(
                communication: CommunicationOptions { _ in try MQTTBinding(options: options) },
                controllers: ControllerConfig(controllerOptions: [
                    "router": ControllerOptions(extra: [
                        "ioContext": IoContext.test(),
                        "rules": try IoAssociationRule.rules(JSONDocument(Array(rules.utf8)).root),
                    ])
                ])
            )
        )
        let manager = container.communicationManager
        let observer = try MQTTTestClient(port: broker.port)
        for event in ["ASC:ctx", "DAD", "ADV:IoContext"] { try observer.subscribe("coaty/3/-/\(event)/+") }
        // A blocking wait would block the actor of the router.
        func untilObserved(_ count: Int) async throws {
            try await withPatience {
                while observer.messages.count < count { try await Task.sleep(for: .milliseconds(5)) }
            }
        }
        manager.start()
        try await untilObserved(1)
        let others = try CommunicationManager(
            identity: Identity(name: "others"),
            options: CommunicationOptions { _ in try MQTTBinding(options: options) }
        )
        others.start()
        try await others.untilOnline()
        try others.publishAdvertise(.with(object: IoNode("n1", sources: (0..<15).map { IoSource("s\($0)") })))
        try others.publishAdvertise(.with(object: IoNode("n2", actors: (0..<20).map { IoActor("a\($0)") })))
        try await untilObserved(1 + 300)
        await container.shutdown()
        try await untilObserved(1 + 300 + 300 + 1)
        #expect(observer.messages.last?.topic == "coaty/3/-/DAD/\(manager.identityId)")
        let dissolved = observer.messages.dropFirst(1 + 300).dropLast()
        #expect(dissolved.count == 300 && dissolved.allSatisfy { !$0.text.contains("associatingRoute") })
        let clientId = "Coaty" + manager.identityId.string.replacing("-", with: "").prefix(18)
        try await withPatience {
            while !broker.log.contains("Client \(clientId) disconnected.") {
                try await Task.sleep(for: .milliseconds(5))
            }
        }
        await others.stop()
    }

    @Test func nodesLostDuringDisconnectAreRemoved() async throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let port = broker.port
        func options() -> CommunicationOptions {
            CommunicationOptions { _ in try MQTTBinding(options: MQTTClientOptions(host: "127.0.0.1", port: port)) }
        }
        let container = try Container.resolve(
            components: Components(controllers: ["router": BasicIoRouter.self]),
            configuration: Configuration(
                communication: options(),
                controllers: ControllerConfig(controllerOptions: [
                    "router": ControllerOptions(extra: ["ioContext": IoContext.test()])
                ])
            )
        )
        let router: BasicIoRouter = try #require(container.getController(name: "router"))
        let clock = SteeredClock()
        router.confirmationClock = clock
        let nodes = [IoNode("n1", sources: [IoSource("s1")]), IoNode("n2", actors: [IoActor("a1")])]
        let agents = try nodes.map {
            try CommunicationManager(identity: Identity(name: "agent"), ioNodes: [$0], options: options())
        }
        let received = Recorder<String>()
        let subscription = agents[0].subscribe(try .associate(ioContextName: "ctx")) {
            received.append("\($0.data.associatingRoute ?? "none")")
        }
        for manager in agents + [container.communicationManager] {
            manager.start()
            try await manager.untilOnline()
        }
        #expect(try await received.wait(for: 1) == ["coaty/3/-/IOV/s1"])
        broker.kill()
        for manager in agents + [container.communicationManager] { try await manager.untilOnline(.offline) }
        // No agent receives its Deadvertise event.
        await agents[1].stop()
        try broker.restart()
        try await withPatience { @ControllerActor in
            while router.unconfirmed != ["n2"] { try await Task.sleep(for: .milliseconds(1)) }
        }
        #expect(Set(router.managedIoNodes.map(\.objectId)) == ["n1", "n2"] && received.values.count == 1)
        try await clock.untilSleeping(untilMilliseconds: 10_000)
        clock.advance(byMilliseconds: 10_000)
        #expect(try await received.wait(for: 2).last == "none")
        #expect(router.managedIoNodes.map(\.objectId) == ["n1"])
        subscription.cancel()
        await container.shutdown()
        await agents[0].stop()
    }
}
