public import Logging

/// The configuration of a container and its controllers.
public struct Configuration {
    /// The common options of all controllers.
    public var common: CommonOptions?
    /// The communication options. A container can't be resolved without them.
    public var communication: CommunicationOptions?
    /// Options of the controllers.
    public var controllers: ControllerConfig?

    /// Creates a configuration.
    public init(
        common: CommonOptions? = nil,
        communication: CommunicationOptions? = nil,
        controllers: ControllerConfig? = nil
    ) {
        self.common = common
        self.communication = communication
        self.controllers = controllers
    }

    /// Builds a configuration step by step.
    ///
    /// - Throws: ``ConfigurationError/noCommunication`` if the steps do not set communication options; the errors of a
    ///   step.
    public static func build(_ steps: (inout Configuration) throws -> Void) throws -> Configuration {
        var configuration = Configuration()
        try steps(&configuration)
        guard configuration.communication != nil else { throw ConfigurationError.noCommunication }
        return configuration
    }
}

/// The reason why a container can't be created or extended.
public enum ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The communication options are missing.
    case noCommunication
    /// The container already has a controller with this name.
    case duplicateController(String)
    /// The properties given for the agent's identity are not valid.
    case invalidIdentity(reason: String)
    /// The container is shut down.
    case shutDown

    /// The error as text.
    public var description: String {
        switch self {
        case .noCommunication: "the configuration has no communication options"
        case .duplicateController(let name): "there is a controller \"\(name)\" already"
        case .invalidIdentity(let reason): "the agent identity is not valid: \(reason)"
        case .shutDown: "the container is shut down"
        }
    }
}

/// The common options of all controllers of a container.
public struct CommonOptions {
    /// The agent's contributions to IO contexts, by context name.
    public var ioContextNodes: [String: IoNodeDefinition]?
    /// Properties of the agent's identity. Those that not every object has go into its ``CoatyObject/custom``.
    public var agentIdentity: [String: AnyCodable]?
    /// The agent's package, build and configuration, for log objects.
    public var agentInfo: AgentInfo?
    /// Application-defined options of the controllers.
    public var extra: [String: Any]
    /// The minimum level of logged entries; nil for that of the container's logger.
    public var logLevel: Logger.Level?
    /// The user on whose behalf the agent acts.
    public var associatedUser: User?
    /// The device that the agent runs on or represents.
    public var associatedDevice: CoatyObject?

    /// Creates options.
    public init(
        ioContextNodes: [String: IoNodeDefinition]? = nil,
        agentIdentity: [String: AnyCodable]? = nil,
        agentInfo: AgentInfo? = nil,
        extra: [String: Any] = [:],
        logLevel: Logger.Level? = nil,
        associatedUser: User? = nil,
        associatedDevice: CoatyObject? = nil
    ) {
        self.ioContextNodes = ioContextNodes
        self.agentIdentity = agentIdentity
        self.agentInfo = agentInfo
        self.extra = extra
        self.logLevel = logLevel
        self.associatedUser = associatedUser
        self.associatedDevice = associatedDevice
    }
}

/// An agent's contribution to an IO context.
public struct IoNodeDefinition {
    /// The sources.
    public var ioSources: [IoSource]?
    /// The actors.
    public var ioActors: [IoActor]?
    /// Properties for routing rules, as plain JSON values.
    public var characteristics: [String: Any]?

    /// Creates a definition.
    public init(
        ioSources: [IoSource]? = nil,
        ioActors: [IoActor]? = nil,
        characteristics: [String: Any]? = nil
    ) {
        self.ioSources = ioSources
        self.ioActors = ioActors
        self.characteristics = characteristics
    }
}

/// Options of the controllers, by their names.
public struct ControllerConfig {
    /// The options.
    public var controllerOptions: [String: ControllerOptions]

    /// Creates a configuration.
    public init(controllerOptions: [String: ControllerOptions]) {
        self.controllerOptions = controllerOptions
    }
}

/// Options of a controller.
public struct ControllerOptions {
    /// Application-defined options of the controller.
    public var extra: [String: Any]

    /// Creates options.
    public init(extra: [String: Any] = [:]) {
        self.extra = extra
    }
}
