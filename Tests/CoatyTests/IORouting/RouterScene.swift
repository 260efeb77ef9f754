import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// A router on an in-memory broker, and an agent that publishes for all other agents and receives the router's events.
@ControllerActor
struct RouterScene<Router: IoRouter> {
    let broker: TopicBroker
    let container: Container
    let router: Router
    let others: CommunicationManager
    private let received = Recorder<String>()
    private let subscription: Subscription
    private var returnedCount = 0

    init(
        context: IoContext = .test(),
        options: [String: Any] = [:],
        limits: OutboxLimits = OutboxLimits(),
        broker: TopicBroker = TopicBroker()
    ) async throws {
        self.broker = broker
        container = try Container.resolve(
            components: Components(controllers: ["router": Router.self]),
            configuration: Configuration(
                communication: CommunicationOptions(outboxLimits: limits) { _ in TopicBinding(broker: broker) },
                controllers: ControllerConfig(controllerOptions: [
                    "router": ControllerOptions(extra: options.merging(["ioContext": context]) { old, _ in old })
                ])
            )
        )
        router = try #require(container.getController(name: "router"))
        others = try CommunicationManager(
            identity: Identity(name: "others"),
            options: CommunicationOptions { _ in TopicBinding(broker: broker) }
        )
        subscription = others.subscribe(try .associate(ioContextName: context.name)) { [received] event in
            received.append(event.line)
        }
        others.start()
        try await others.untilOnline()
        container.communicationManager.start()
        let topic = "coaty/3/-/ADV:IoContext/\(id)"
        _ = try await broker.waitForMessages { $0.contains { $0.topic == topic } }
    }

    nonisolated var id: CoatyUUID { container.communicationManager.identityId }

    func advertise(_ nodes: IoNode...) throws {
        for node in nodes { try others.publishAdvertise(.with(object: node)) }
    }

    func deadvertise(_ ids: CoatyUUID...) throws {
        try others.publishDeadvertise(.with(objectIds: ids))
    }

    /// Updates the context, and waits for the Complete event.
    func update(_ context: sending IoContext) async throws {
        let event = try UpdateEvent.with(object: context)
        try await withPatience { [others] in
            for await _ in try others.publishUpdate(event, timeLimit: patience) { return }
            throw TimedOut()
        }
    }

    /// Returns the new association events of the router, after it has handled everything published before.
    mutating func news() async throws -> [String] {
        // The router sends the Complete event after all earlier events.
        let json = try #require(router.ioContextJSON)
        try await update(#require(try PayloadCoder.object(json) as? IoContext))
        let all = received.values
        defer { returnedCount = all.count }
        return Array(all[returnedCount...])
    }

    func end() async {
        await container.shutdown()
        await others.stop()
    }

    /// Waits until the router has published this number of association events, and returns all of them.
    nonisolated func waitForNews(_ count: Int) async throws -> [String] { try await received.wait(for: count) }
}

extension AssociateEvent {
    /// The association as `source>actor`: with `-` in front if it is dissolved, otherwise with the rate, and with the
    /// route if it is external.
    fileprivate var line: String {
        let pair = "\(data.ioSourceId)>\(data.ioActorId)"
        guard let route = data.associatingRoute else { return "-" + pair }
        let rate = data.updateRate.map { " \($0)" } ?? ""
        return pair + rate + (route == "coaty/3/-/IOV/\(data.ioSourceId)" ? "" : " " + route)
    }
}

extension IoContext {
    static func test(state: String = "normal", name: String = "ctx", id: String = "ctx-id") -> sending IoContext {
        let context = IoContext(
            coreType: .IoContext,
            objectType: "com.example.Context",
            objectId: CoatyUUID(wire: id),
            name: name
        )
        context.custom["operatingState"] = .string(state)
        return context
    }
}

extension IoNode {
    convenience init(
        _ id: String,
        sources: [IoSource] = [],
        actors: [IoActor] = [],
        state: String? = nil,
        context: String = "ctx",
        agent: String = "agent"
    ) {
        self.init(
            name: context,
            ioSources: sources,
            ioActors: actors,
            characteristics: state.map { ["state": $0] },
            objectId: CoatyUUID(wire: id)
        )
        parentObjectId = CoatyUUID(wire: agent)
    }
}

extension IoSource {
    convenience init(_ id: String, of type: String = "v", rate: Int? = nil, isRaw: Bool? = nil, route: String? = nil) {
        self.init(
            valueType: type,
            useRawIoValues: isRaw,
            updateRate: rate,
            externalRoute: route,
            name: id,
            objectId: CoatyUUID(wire: id)
        )
    }
}

extension IoActor {
    convenience init(_ id: String, of type: String = "v", rate: Int? = nil, isRaw: Bool? = nil) {
        self.init(
            valueType: type,
            useRawIoValues: isRaw,
            updateRate: rate,
            name: id,
            objectId: CoatyUUID(wire: id)
        )
    }
}

extension CoatyUUID: ExpressibleByStringLiteral {
    init(stringLiteral value: String) { self.init(wire: value) }
}
