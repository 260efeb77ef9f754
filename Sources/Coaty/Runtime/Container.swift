public import Logging
import Synchronization

/// An agent: its identity, its controllers and its communication manager.
///
/// A container lives until ``shutdown()``.
@ControllerActor
public final class Container {
    /// The identity of the agent.
    public let identity: Identity
    /// The configuration that the container was resolved with.
    public let configuration: Configuration
    /// Publishes and observes events for the controllers.
    public nonisolated let communicationManager: CommunicationManager
    /// The logger of the container and its communication manager.
    public nonisolated let logger: Logger

    private var controllers: [(name: String, controller: Controller)] = []
    private var isStarted = false
    /// The shutdown, once it has begun.
    private var leaving: Task<Void, Never>?
    private nonisolated let lifecycle = Lifecycle()
    /// Ends when the container is shut down.
    private nonisolated let untilShutdown = AsyncStream.makeStream(of: Never.self)

    /// Creates a container with its controllers, and starts its communication manager if the configuration requires it.
    ///
    /// - Parameters:
    ///   - components: the classes of the controllers and objects.
    ///   - configuration: the configuration of the agent and its controllers.
    ///   - logger: the log, which gets the configuration's log level if there is one.
    ///   - controllerLogger: the log of the controllers, if it is another one.
    /// - Throws: ``ConfigurationError``; the errors of ``CommunicationManager/init(identity:ioNodes:options:logger:)``.
    public static func resolve(
        components: sending Components = Components(),
        configuration: sending Configuration,
        logger: Logger = Logger(label: "coaty"),
        controllerLogger: Logger? = nil
    ) throws -> Container {
        guard let communication = configuration.communication else { throw ConfigurationError.noCommunication }
        for objectType in components.objectTypes { _ = objectType.objectType }
        let container = try Container(configuration, communication, logger, controllerLogger ?? logger)
        do {
            for (name, controllerType) in components.controllers { try container.add(name, controllerType) }
        } catch {
            // Controllers refer to their container.
            container.controllers = []
            throw error
        }
        container.followCommunicationManager()
        for (_, controller) in container.controllers { controller.onInit() }
        if communication.shouldAutoStart { container.communicationManager.start() }
        return container
    }

    private init(
        _ configuration: Configuration,
        _ communication: CommunicationOptions,
        _ logger: Logger,
        _ controllerLogger: Logger
    ) throws {
        var (logger, controllerLogger) = (logger, controllerLogger)
        if let level = configuration.common?.logLevel {
            logger.logLevel = level
            controllerLogger.logLevel = level
        }
        identity = try Identity(properties: configuration.common?.agentIdentity ?? [:])
        let definitions = configuration.common?.ioContextNodes ?? [:]
        communicationManager = try CommunicationManager(
            identity: identity,
            ioNodes: definitions.sorted { $0.key < $1.key }.map { IoNode(name: $0.key, definition: $0.value) },
            options: communication,
            logger: logger
        )
        self.configuration = configuration
        self.logger = controllerLogger
    }

    /// Returns the controller with a name; nil if there is none of this class.
    public func getController<C: Controller>(name: String) -> C? {
        controllers.first { $0.name == name }?.controller as? C
    }

    /// Adds a controller at run time. If the communication manager is started, the controller is notified immediately.
    ///
    /// - Throws: ``ConfigurationError/duplicateController(_:)``, ``ConfigurationError/shutDown``
    public func registerController(
        name: String,
        controllerType: Controller.Type,
        controllerOptions: ControllerOptions = ControllerOptions()
    ) throws {
        let controller = try add(name, controllerType, controllerOptions)
        controller.onInit()
        if isStarted { controller.onCommunicationManagerStarting() }
    }

    /// Starts the communication manager, and keeps the agent in the network until the current task is cancelled. The
    /// agent has then left the network, and the container is shut down. Also returns after ``shutdown()``. Call it
    /// once.
    ///
    /// It is the method that the Service protocol of swift-service-lifecycle requires. Its graceful shutdown does not
    /// cancel tasks by itself: use `cancelWhenGracefulShutdown { try await container.run() }`.
    public nonisolated func run() async throws {
        communicationManager.start()
        for await _ in untilShutdown.stream {}
        await shutdown()
    }

    /// Stops the communication manager, and disposes of the controllers. Returns when this is done, even if the current
    /// task is cancelled or another task has called it first.
    public func shutdown() async {
        let leaving = leaving ?? Task { await leave() }
        self.leaving = leaving
        await leaving.value
    }

    private func leave() async {
        await communicationManager.close()
        communicationManager.setLifecycleDelegate(nil)
        lifecycle.end()
        untilShutdown.continuation.finish()
        for (_, controller) in controllers {
            controller.disposeBag.dispose()
            controller.onDispose()
        }
        controllers = []
    }

    @discardableResult
    private func add(
        _ name: String,
        _ controllerType: Controller.Type,
        _ options: ControllerOptions? = nil
    ) throws -> Controller {
        guard leaving == nil else { throw ConfigurationError.shutDown }
        guard !controllers.contains(where: { $0.name == name }) else {
            throw ConfigurationError.duplicateController(name)
        }
        let controller = controllerType.init(
            container: self,
            options: options ?? configuration.controllers?.controllerOptions[name] ?? ControllerOptions(),
            registeredName: name
        )
        controllers.append((name, controller))
        return controller
    }

    private func followCommunicationManager() {
        communicationManager.setLifecycleDelegate(lifecycle)
        Task {
            for await step in lifecycle.steps {
                switch step {
                case .starting(let join):
                    isStarted = true
                    for (_, controller) in controllers { controller.onCommunicationManagerStarting() }
                    // After the tasks that the controllers have just started, so that their observations are among the
                    // first subscriptions.
                    await Task { join() }.value
                case .stopping(let done):
                    isStarted = false
                    for (_, controller) in controllers {
                        controller.onCommunicationManagerStopping()
                        controller.disposeBag.dispose()
                    }
                    // Concurrently, so that the maximum wait is that of one controller.
                    await withDiscardingTaskGroup { group in
                        for (_, controller) in controllers { group.addTask { await controller.beforeLeaving() } }
                    }
                    done.resume()
                }
            }
        }
    }
}

/// Passes the lifecycle calls of the communication manager to the container, in order.
private final class Lifecycle: LifecycleDelegate {
    enum Step: Sendable {
        case starting(join: @Sendable () -> Void)
        case stopping(done: CheckedContinuation<Void, Never>)
    }

    let steps: AsyncStream<Step>
    private let continuation: AsyncStream<Step>.Continuation

    init() {
        // Unbounded, but it stays small: starting and stopping alternate, and stopping waits for its step.
        (steps, continuation) = AsyncStream.makeStream(of: Step.self)
    }

    func communicationManagerIsStarting(then join: @escaping @Sendable () -> Void) {
        continuation.yield(.starting(join: join))
    }

    func communicationManagerIsStopping() async {
        await withCheckedContinuation { done in
            if case .terminated = continuation.yield(.stopping(done: done)) { done.resume() }
        }
    }

    func end() { continuation.finish() }
}

extension Identity {
    /// Creates an identity with the properties of a configuration.
    fileprivate convenience init(properties: [String: AnyCodable]) throws {
        self.init()
        guard !properties.isEmpty else { return }
        if let name = properties.keys.first(where: { $0 == "coreType" || $0 == "objectType" }) {
            throw ConfigurationError.invalidIdentity(reason: "\(name) can't be chosen")
        }
        for (key, value) in properties {
            switch (key, value) {
            case ("name", .string(let text)): name = text
            case ("objectId", .string(let text)):
                guard let id = CoatyUUID(uuidString: text) else {
                    throw ConfigurationError.invalidIdentity(reason: "objectId is no UUID")
                }
                objectId = id
            case ("externalId", .string(let text)): externalId = text
            case ("parentObjectId", .string(let text)): parentObjectId = CoatyUUID(wire: text)
            case ("locationId", .string(let text)): locationId = CoatyUUID(wire: text)
            case ("isDeactivated", .bool(let isDeactivated)): self.isDeactivated = isDeactivated
            default:
                guard !ObjectCore.propertyNames.contains(key) else {
                    throw ConfigurationError.invalidIdentity(reason: "\(key) is of another type")
                }
                custom[key] = value
            }
        }
    }
}

extension IoNode {
    fileprivate convenience init(name: String, definition: IoNodeDefinition) {
        self.init(
            name: name,
            ioSources: definition.ioSources ?? [],
            ioActors: definition.ioActors ?? [],
            characteristics: definition.characteristics
        )
    }
}
