public import Logging
import Synchronization

/// Publishes the log entries of an agent as Log objects.
///
/// The name of a Log object is the logger's label, its labels are the metadata. `trace` becomes debug, `notice` becomes
/// info and `critical` becomes fatal. Entries of this library are not published, since publishing them would be logged
/// again.
///
/// ```swift
/// let manager = container.communicationManager
/// let logger = Logger(label: "com.example") { CoatyLogHandler(label: $0, communicationManager: manager) }
/// ```
///
/// Logging never blocks. An entry is dropped while ``maximumWaiting`` publications or ``maximumWaitingBytes`` are
/// queued, so that there is space for events. The next entry contains the number of dropped entries in its label
/// `droppedBefore`.
public struct CoatyLogHandler: LogHandler {
    /// Number of queued publications from which entries are dropped.
    public static let maximumWaiting = 1000
    /// Number of queued bytes from which entries are dropped.
    public static let maximumWaitingBytes = 1 << 20
    /// Maximum length of a message, a label or a list of labels, in Unicode scalars or elements; the rest is cut off.
    public static let maximumLength = 2000
    /// Maximum size of a Log object, in bytes; a larger one is published without its labels.
    public static let maximumSize = 64 << 10

    /// The minimum level of published entries.
    public var logLevel: Logger.Level
    /// The metadata of each entry.
    public var metadata: Logger.Metadata = [:]
    /// Returns the metadata of an entry when it is logged.
    public var metadataProvider: Logger.MetadataProvider?

    private let label: String
    private let agentInfo: AgentInfo?
    private let publisher: Publisher

    /// Creates a handler.
    ///
    /// - Parameters:
    ///   - label: the label of the logger.
    ///   - communicationManager: publishes the entries; not kept alive.
    ///   - agentInfo: the agent's package, build and configuration.
    ///   - logLevel: the minimum level of published entries.
    public init(
        label: String,
        communicationManager: CommunicationManager,
        agentInfo: AgentInfo? = nil,
        logLevel: Logger.Level = .info
    ) {
        self.label = label
        self.agentInfo = agentInfo
        self.logLevel = logLevel
        publisher = Publisher(communicationManager)
    }

    /// The metadata of each entry, by key.
    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Publishes an entry.
    public func log(event: LogEvent) {
        guard !Self.ownSources.contains(event.source) else { return }
        publisher.publish { dropped in
            var labels = metadata
            if let provided = metadataProvider?.get() { labels.merge(provided) { $1 } }
            if let own = event.metadata { labels.merge(own) { $1 } }
            if let error = event.error { labels["error"] = "\(error)" }
            if dropped > 0 { labels["droppedBefore"] = .stringConvertible(dropped) }
            let log = Log(
                logLevel: LogLevel(event.level),
                logMessage: Self.cut(event.message.description),
                logDate: Log.dateNow(),
                name: label,
                logLabels: labels.isEmpty ? nil : Self.labels(labels),
                logHost: LogHost(current: agentInfo)
            )
            let advertise = try AdvertiseEvent.with(object: log)
            guard advertise.payload.bytes.count > Self.maximumSize else { return advertise }
            log.logLabels = nil
            return try AdvertiseEvent.with(object: log)
        }
    }

    /// The modules that are involved in publishing.
    private static let ownSources: Set = ["Coaty", "CoatyMQTT"]

    private static func cut(_ text: String) -> String { String(text.unicodeScalars.prefix(maximumLength)) }

    private static func labels(_ metadata: Logger.Metadata) -> [String: AnyCodable] {
        Dictionary(uniqueKeysWithValues: metadata.prefix(maximumLength).map { ($0.key, label($0.value)) })
    }

    private static func label(_ value: Logger.MetadataValue) -> AnyCodable {
        switch value {
        case .string(let text): .string(cut(text))
        case .array(let elements): .array(elements.prefix(maximumLength).map(label))
        case .dictionary(let members): .object(labels(members))
        case .stringConvertible(let value):
            AnyCodable(any: value) ?? .string(cut(value.description))
        }
    }
}

/// Publishes entries, and counts the dropped ones.
private final class Publisher: Sendable {
    /// Set while an entry is being published: entries that a binding logs meanwhile on the same thread must not be
    /// published.
    @TaskLocal static var isPublishing = false

    private weak let manager: CommunicationManager?
    private let dropped = Atomic(0)

    init(_ manager: CommunicationManager) {
        self.manager = manager
    }

    func publish(_ entry: (_ dropped: Int) throws -> AdvertiseEvent) {
        guard !Self.isPublishing, let manager else { return }
        let queued = manager.queued
        guard queued.publications < CoatyLogHandler.maximumWaiting, queued.bytes < CoatyLogHandler.maximumWaitingBytes
        else {
            dropped.add(1, ordering: .relaxed)
            return
        }
        let before = dropped.exchange(0, ordering: .relaxed)
        Self.$isPublishing.withValue(true) {
            do {
                try manager.publishAdvertise(entry(before))
            } catch {
                // The failure can't be logged, because it would go to this logger.
                dropped.add(before + 1, ordering: .relaxed)
            }
        }
    }
}

extension LogLevel {
    fileprivate init(_ level: Logger.Level) {
        self =
            switch level {
            case .trace, .debug: .debug
            case .info, .notice: .info
            case .warning: .warning
            case .error: .error
            case .critical: .fatal
            }
    }
}
