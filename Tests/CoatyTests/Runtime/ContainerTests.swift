import Logging
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

@ControllerActor @Suite(.exclusive, .timeLimit(.minutes(1))) struct ContainerTests {
    private nonisolated func configuration(_ common: sending CommonOptions? = nil) -> sending Configuration {
        Configuration(
            common: common,
            communication: CommunicationOptions { _ in InMemoryBinding(broker: InMemoryBroker()) }
        )
    }

    /// Otherwise a container would hide that its agent is not connected, which is a warning.
    @Test func logsWithTheLevelOfTheLogger() async throws {
        var logger = Logger(label: "test")
        logger.logLevel = .debug
        let plain = try Container.resolve(
            components: Components(controllers: [:]),
            configuration: configuration(),
            logger: logger
        )
        let configured = try Container.resolve(
            components: Components(controllers: [:]),
            configuration: configuration(CommonOptions(logLevel: .critical)),
            logger: logger
        )
        #expect(plain.logger.logLevel == .debug && plain.communicationManager.logger.logLevel == .debug)
        #expect(configured.logger.logLevel == .critical)
        for container in [plain, configured] { await container.shutdown() }
    }

    @Test func aDuplicateControllerNameLeaksNothing() throws {
        let reference = try leakIfDuplicate(["a": ObservedController.self, "a": ObservedController.self])
        #expect(reference.value == nil)
    }

    private func leakIfDuplicate(_ controllers: KeyValuePairs<String, Controller.Type>) throws -> WeakReference {
        ObservedController.last = WeakReference()
        #expect(throws: ConfigurationError.duplicateController("a")) {
            try Container.resolve(components: Components(controllers: controllers), configuration: configuration())
        }
        return ObservedController.last
    }

    @Test func endedObservationsLeaveTheDisposeBag() async throws {
        let manager = try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions { _ in InMemoryBinding(broker: InMemoryBroker()) }
        )
        let bag = DisposeBag()
        var kept: Recorder<Int>? = Recorder()
        weak let value = kept
        let subscription = manager.subscribe(.discover) { [kept] _ in kept?.append(1) }
        subscription.disposed(by: bag)
        let request = try manager.publish(DiscoverEvent.with(coreTypes: [.Task])) { _ in }
        request.disposed(by: bag)
        #expect(bag.count == 2)
        kept = nil
        subscription.cancel()
        request.cancel()
        #expect(bag.count == 0 && value == nil)
        subscription.disposed(by: bag)
        #expect(bag.count == 0, "it has ended")
    }

    @Test func anInMemoryBrokerKeepsABoundedNumberOfPublications() throws {
        let broker = InMemoryBroker()
        let maximum = InMemoryBroker.maximumPublished
        func publication(_ number: Int, _ size: Int) -> Publication {
            Publication(.raw(topic: "\(number)", isRetained: false), payload: [UInt8](repeating: 0, count: size))
        }
        for number in 0...maximum.count { broker.publish(publication(number, 0)) }
        let isLast = { (topic: String) in
            if case .raw(topic, _)? = broker.published.last?.destination { true } else { false }
        }
        try waitUntil("all are published") { isLast("\(maximum.count)") }
        #expect(broker.published.count == maximum.count)
        for number in 0..<5 { broker.publish(publication(-number, maximum.bytes / 4)) }
        try waitUntil("all are published") { isLast("-4") }
        #expect(broker.published.count <= 4)
    }

    @Test func runServesUntilItsTaskIsCancelledAndThenLeaves() async throws {
        let broker = InMemoryBroker()
        let container = try Container.resolve(
            configuration: Configuration(communication: CommunicationOptions { _ in InMemoryBinding(broker: broker) })
        )
        let agent = container.communicationManager
        let running = Task { try await container.run() }
        try await agent.untilOnline()
        running.cancel()
        try await running.value
        let events = broker.published.compactMap { publication in
            if case .event(let address) = publication.destination { address.eventType } else { nil }
        }
        #expect(events.first == .advertise && events.last == .deadvertise)
        #expect(!agent.isConnected)
    }

    /// A second caller does not return before the agent has left.
    @Test func everyShutdownWaitsUntilTheAgentHasLeft() async throws {
        let container = try Container.resolve(
            components: Components(controllers: ["a": LingeringController.self]),
            configuration: configuration()
        )
        let controller: LingeringController = try #require(container.getController(name: "a"))
        let arrived = Recorder<Bool>()
        (controller.arrived, controller.expected) = (arrived, 2)
        container.communicationManager.start()
        let first = Task { await container.shutdown() }
        _ = try await arrived.wait(for: 1)
        let second = Task { await container.shutdown() }
        arrived.append(true)
        await second.value
        #expect(container.communicationManager.operatingState == .stopped && controller.hasMetAll)
        await first.value
    }

    @Test func runReturnsAfterShutdown() async throws {
        let container = try Container.resolve(configuration: configuration())
        let running = Task { try await container.run() }
        try await container.communicationManager.untilOnline()
        await container.shutdown()
        try await running.value
    }

    @Test func controllersWaitTogetherBeforeTheAgentLeaves() async throws {
        let names = ["a", "b", "c"]
        let container = try Container.resolve(
            components: Components(
                controllers: [
                    "a": LingeringController.self, "b": LingeringController.self, "c": LingeringController.self,
                ]
            ),
            configuration: Configuration(
                communication: CommunicationOptions { _ in InMemoryBinding(broker: InMemoryBroker()) }
            )
        )
        let arrived = Recorder<Bool>()
        let controllers: [LingeringController] = names.compactMap { container.getController(name: $0) }
        try #require(controllers.count == names.count)
        for controller in controllers { (controller.arrived, controller.expected) = (arrived, names.count) }
        container.communicationManager.start()
        await container.shutdown()
        #expect(controllers.map(\.hasMetAll) == [true, true, true])
    }
}

private struct WeakReference {
    weak var value: AnyObject?
}

/// A controller whose latest instance is known.
private final class ObservedController: Controller {
    static var last = WeakReference()

    required init(container: Container, options: ControllerOptions, registeredName: String) {
        super.init(container: container, options: options, registeredName: registeredName)
        Self.last = WeakReference(value: container)
    }
}

/// A controller that does not finish its shutdown before all controllers have begun theirs.
private final class LingeringController: Controller {
    var arrived = Recorder<Bool>()
    var expected = 1
    private(set) var hasMetAll = false

    override func beforeLeaving() async {
        arrived.append(true)
        hasMetAll = await (try? arrived.wait(for: expected)) != nil
    }
}
