import Foundation
public import Logging
import Synchronization

/// Writes log lines to standard error, each as one line.
///
/// Text in a line may come from the network: control characters in it are escaped, so that it can neither forge a line nor send
/// commands to a terminal.
public struct LogStream: TextOutputStream, Sendable {
    /// Returns a log handler that writes to standard error.
    ///
    /// Its level is ``level``, whatever a logger sets: copies of loggers are everywhere, and a reload changes all of them.
    public static func handler(label: String) -> any LogHandler {
        LevelledHandler(base: StreamLogHandler(label: label, stream: LogStream()))
    }

    /// The least grave messages that are written.
    public static var level: Logger.Level {
        get { Logger.Level.allCases[currentLevel.load(ordering: .relaxed)] }
        set { currentLevel.store(Logger.Level.allCases.firstIndex(of: newValue) ?? 0, ordering: .relaxed) }
    }

    /// An index of `Logger.Level.allCases`.
    private static let currentLevel = Atomic(Logger.Level.allCases.firstIndex(of: .info) ?? 0)

    private struct LevelledHandler: LogHandler {
        var base: StreamLogHandler

        var logLevel: Logger.Level {
            get { LogStream.level }
            set {}
        }
        var metadata: Logger.Metadata {
            get { base.metadata }
            set { base.metadata = newValue }
        }
        var metadataProvider: Logger.MetadataProvider? {
            get { base.metadataProvider }
            set { base.metadataProvider = newValue }
        }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { base[metadataKey: key] }
            set { base[metadataKey: key] = newValue }
        }

        func log(event: LogEvent) { base.log(event: event) }
    }

    /// Writes one line, which must end with a newline.
    public func write(_ line: String) {
        // There is nowhere left to report a failure.
        try? FileHandle.standardError.write(contentsOf: Data((Self.escaped(line.dropLast()) + "\n").utf8))
    }

    /// Returns the text with escapes for backslashes and for characters that control a terminal, break lines or change the text
    /// direction.
    static func escaped(_ text: some StringProtocol) -> String {
        guard text.unicodeScalars.contains(where: { $0 == "\\" || isControl($0) }) else { return String(text) }
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\r": escaped += "\\r"
            case "\t": escaped += "\\t"
            case _ where isControl(scalar): escaped += "\\u{" + String(scalar.value, radix: 16) + "}"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}
