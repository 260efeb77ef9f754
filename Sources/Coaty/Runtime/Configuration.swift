public import Logging

/// How a container and its controllers are to behave.
public struct Configuration {
    /// What all controllers share.
    public var common: CommonOptions?
    /// How the agent takes part in a network. A container can't be resolved without.
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
    /// - Throws: ``ConfigurationError/noCommunication`` where the steps leave it without communication options; what a step
    ///   throws.
    public static func build(_ steps: (inout Configuration) throws -> Void) throws -> Configuration {
        var configuration = Configuration()
        try steps(&configuration)
        guard configuration.communication != nil else { throw ConfigurationError.noCommunication }
        return configuration
    }
}

/// Why a container can't be made or extended.
public enum ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The communication options are missing.
    case noCommunication
    /// The container has a controller of this name.
    case duplicateController(String)
    /// The properties given for the agent's identity make no identity.
    case invalidIdentity(reason: String)
    /// The container is shut down.
    case shutDown

    /// The error in words.
    public var description: String {
        switch self {
        case .noCommunication: "the configuration has no communication options"
        case .duplicateController(let name): "there is a controller \"\(name)\" already"
        case .invalidIdentity(let reason): "the agent identity is not valid: \(reason)"
        case .shutDown: "the container is shut down"
        }
    }
}

/// What all controllers of a container share.
public struct CommonOptions {
    /// What the agent contributes to IO contexts, by the context's name.
    public var ioContextNodes: [String: IoNodeDefinition]?
    /// Properties of the agent's identity; others than those of every object go into its ``CoatyObject/custom``.
    public var agentIdentity: [String: AnyCodable]?
    /// The agent's package, build and configuration, for log objects.
    public var agentInfo: AgentInfo?
    /// Whatever the application's controllers want to know.
    public var extra: [String: Any]
    /// The least level of what is logged.
    public var logLevel: Logger.Level
    /// The user on whose behalf the agent acts.
    public var associatedUser: User?
    /// The device that the agent runs on or stands for.
    public var associatedDevice: CoatyObject?

    /// Creates options.
    public init(
        ioContextNodes: [String: IoNodeDefinition]? = nil,
        agentIdentity: [String: AnyCodable]? = nil,
        agentInfo: AgentInfo? = nil,
        extra: [String: Any] = [:],
        logLevel: Logger.Level = .error,
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

/// What an agent contributes to an IO context.
public struct IoNodeDefinition {
    /// The sources.
    public var ioSources: [IoSource]?
    /// The actors.
    public var ioActors: [IoActor]?
    /// What routing rules may ask for, as plain JSON values.
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
    /// Whatever the controller wants to know.
    public var extra: [String: Any]

    /// Creates options.
    public init(extra: [String: Any] = [:]) {
        self.extra = extra
    }
}
