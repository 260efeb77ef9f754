/// A log entry of an agent, for decentralized logging.
open class Log: CoatyObject {
    /// `coaty.Log`
    open override class var objectType: String { CoreType.Log.objectType }

    /// The severity of the entry.
    public var logLevel: LogLevel
    /// The message.
    public var logMessage: String
    /// The time of the entry, as an ISO 8601 date and time with milliseconds and offset.
    public var logDate: String
    /// Words to categorize entries by; not empty.
    public var logTags: [String]?
    /// Further dimensions of the entry, as plain JSON values.
    public var logLabels: [String: Any]?
    /// The host that created the entry. It is not encoded if it has no properties.
    public var logHost: LogHost

    /// Creates a log entry.
    public init(
        logLevel: LogLevel,
        logMessage: String,
        logDate: String,
        name: String = "LogObject",
        objectType: String = CoreType.Log.objectType,
        objectId: CoatyUUID = .init(),
        logTags: [String]? = nil,
        logLabels: [String: Any]? = nil,
        logHost: LogHost = LogHost()
    ) {
        self.logLevel = logLevel
        self.logMessage = logMessage
        self.logDate = logDate
        self.logTags = logTags
        self.logLabels = logLabels
        self.logHost = logHost
        super.init(coreType: .Log, objectType: objectType, objectId: objectId, name: name)
    }

    private enum Keys: String, CodingKey, CaseIterable {
        case logLevel, logMessage, logDate, logTags, logLabels, logHost
    }

    override class var propertyNames: [String] { super.propertyNames + Keys.allCases.map(\.rawValue) }

    /// Decodes a log entry.
    public required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        logLevel = try container.decode(LogLevel.self, forKey: .logLevel)
        logMessage = try container.decode(String.self, forKey: .logMessage)
        logDate = try container.decode(String.self, forKey: .logDate)
        logTags = try container.decodeIfPresent([String].self, forKey: .logTags)
        logLabels = try container.decodeDictionaryIfPresent(forKey: .logLabels)
        logHost = try container.decodeIfPresent(LogHost.self, forKey: .logHost) ?? LogHost()
        try super.init(from: decoder)
    }

    /// Encodes the log entry.
    open override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(logLevel, forKey: .logLevel)
        try container.encode(logMessage, forKey: .logMessage)
        try container.encode(logDate, forKey: .logDate)
        try container.encodeIfPresent(logTags, forKey: .logTags)
        try container.encodeDictionaryIfPresent(logLabels, forKey: .logLabels)
        if logHost != LogHost() { try container.encode(logHost, forKey: .logHost) }
    }
}

/// The severity of a log entry.
public enum LogLevel: Int, Codable, Sendable, CaseIterable {
    case debug = 10
    case info = 20
    case warning = 30
    case error = 40
    case fatal = 50
}

/// The host that created a log entry.
public struct LogHost: Codable, Sendable, Hashable {
    /// The agent's package, build and configuration, as JSON.
    public var agentInfo: AnyCodable?
    /// The process id.
    public var pid: Double?
    /// The host's name.
    public var hostname: String?
    /// The browser, if the agent runs in one.
    public var userAgent: String?

    /// Creates a host.
    public init(
        agentInfo: AnyCodable? = nil,
        pid: Double? = nil,
        hostname: String? = nil,
        userAgent: String? = nil
    ) {
        self.agentInfo = agentInfo
        self.pid = pid
        self.hostname = hostname
        self.userAgent = userAgent
    }
}
