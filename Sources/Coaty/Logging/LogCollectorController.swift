import Logging

/// A controller that writes the Log objects of the network, including those of this agent, to a logger.
///
/// The logger is the option `logger` or, if absent, the container's logger. Texts from the network are cut to
/// ``maximumMessageLength`` and ``maximumTextLength``, and their control characters are replaced.
open class LogCollectorController: Controller {
    /// Maximum length of a written message, in Unicode scalars.
    public nonisolated static let maximumMessageLength = 2000
    /// Maximum length of the other written texts, in Unicode scalars.
    public nonisolated static let maximumTextLength = 200
    /// Maximum number of written tags of an entry.
    public nonisolated static let maximumTags = 16

    /// Starts to collect.
    open override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        let logger = options.extra["logger"] as? Logger ?? container.logger
        let logs = communicationManager.observeAdvertise(withCoreType: .Log)
        // Not on the controllers' actor: a logger may block.
        Task.detached {
            for await event in logs { Self.write(event, to: logger) }
        }
        .disposed(by: disposeBag)
    }

    private nonisolated static func write(_ event: AdvertiseEvent, to logger: Logger) {
        guard let log = event.payload.json["object"],
            let level = log["logLevel"]?.number.flatMap({ Int(exactly: $0).flatMap(LogLevel.init) })
        else { return }
        logger.log(
            level: Logger.Level(level),
            "\(clean(log["logMessage"]?.string, maximumMessageLength))",
            metadata: metadata(of: log, sourceId: event.sourceId)
        )
    }

    private nonisolated static func metadata(of log: JSONView, sourceId: CoatyUUID?) -> Logger.Metadata {
        var metadata: Logger.Metadata = [
            "name": "\(clean(log["name"]?.string))",
            "source": "\(clean(sourceId?.string))",
            "date": "\(clean(log["logDate"]?.string))",
        ]
        if let tags = log["logTags"]?.elements.prefix(maximumTags).map({ "\(clean($0.string))" as Logger.MetadataValue }
        ),
            !tags.isEmpty
        {
            metadata["tags"] = .array(tags)
        }
        if let hostname = log["logHost"]?["hostname"]?.string { metadata["host"] = "\(clean(hostname))" }
        if let pid = log["logHost"]?["pid"]?.number.flatMap(Int.init(exactly:)) { metadata["pid"] = "\(pid)" }
        return metadata
    }

    /// Returns a text that can't end a line, move a terminal's cursor, or change the text direction.
    nonisolated static func clean(_ text: String?, _ maximumLength: Int = maximumTextLength) -> String {
        guard let scalars = text?.unicodeScalars else { return "" }
        var cleaned = String.UnicodeScalarView()
        for scalar in scalars.prefix(maximumLength) {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: cleaned.append("\u{FFFD}")
            default: cleaned.append(scalar)
            }
        }
        if scalars.count > maximumLength { cleaned.append("…") }
        return String(cleaned)
    }
}

extension Logger.Level {
    fileprivate init(_ level: LogLevel) {
        self =
            switch level {
            case .debug: .debug
            case .info: .info
            case .warning: .warning
            case .error: .error
            case .fatal: .critical
            }
    }
}
