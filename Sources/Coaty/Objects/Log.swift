/// A log entry of an agent, for decentralized logging.
///
/// Its properties are those of ``LogContent``.
open class Log: ContentObject<LogContent> {
    /// `coaty.Log`
    open override class var objectType: String { CoreType.Log.objectType }

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
        let content = LogContent(logLevel: logLevel, logMessage: logMessage, logDate: logDate)
        super.init(content, coreType: .Log, objectType: objectType, objectId: objectId, name: name)
        self.logTags = logTags
        self.logLabels = logLabels
        self.logHost = logHost
    }

    /// Decodes the object.
    public required init(from decoder: any Decoder) throws {
        try super.init(from: decoder)
    }

    /// Further dimensions of the entry, as plain JSON values. They are converted when they
    /// are set; encoding throws if JSON can't represent one.
    public var logLabels: [String: Any]? {
        get { content.logLabels?.mapValues(\.value) }
        set { content.logLabels = newValue.map(AnyCodable.members) }
    }

    /// The host that created the entry. One without properties is not encoded, unless it was received.
    public var logHost: LogHost {
        get { content.logHost ?? LogHost() }
        set { content.logHost = newValue == LogHost() ? nil : newValue }
    }
}

/// The properties of a ``Log``.
public struct LogContent: CoatyContent, Hashable {
    /// `coaty.Log`
    public static let objectType = CoreType.Log.objectType
    /// `Log`
    public static let coreType = CoreType.Log

    /// The severity of the entry.
    public var logLevel: LogLevel
    /// The message.
    public var logMessage: String
    /// The time of the entry, as an ISO 8601 date and time with milliseconds and offset.
    public var logDate: String
    /// Words to categorize entries by; not empty.
    public var logTags: [String]?
    /// Further dimensions of the entry.
    public var logLabels: [String: AnyCodable]?
    /// The host that created the entry.
    public var logHost: LogHost?

    /// Creates the properties; optional ones can be set afterwards.
    public init(logLevel: LogLevel, logMessage: String, logDate: String) {
        self.logLevel = logLevel
        self.logMessage = logMessage
        self.logDate = logDate
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

extension LogLevel: WireValue {}

extension LogHost: WireStructure {
    static var wireExceptions: [PropertyRule] {
        [
            .optional(
                "agentInfo",
                .object([
                    .required("packageInfo", .object([.required("name", .string), .required("version", .string)])),
                    .required(
                        "buildInfo",
                        .object([.required("buildDate", .string), .required("buildMode", .string)])
                    ),
                    .required("configInfo", .object([.required("serviceHost", .string)])),
                ])
            )
        ]
    }
}
