import Edge
import Foundation
import Logging
package import Logs

/// The settings of the log.
public struct LogSettings: Sendable, Equatable {
    package var lines = LogControl.Settings()
    var requests = RequestLog.Settings()
}

extension GatewaySettings {
    static let logSettings: [Setting] = [
        choice("log-format", of: LogLine.Format.allCases, "Format of log lines: text, or JSON objects (text).", "text")
        {
            $0.lines.format = $1
        },
        choice("log-level", of: Logger.Level.allCases, "Lowest level of messages to log (info).", "info") {
            $0.lines.level = $1
        },
        Setting(
            name: "log-levels",
            placeholder: "label=level,…",
            help: """
                Levels of single labels instead of --log-level, such as broker=debug,http=warning. The labels are \
                \(LogLabel.allCases.map(\.name).joined(separator: ", ")) (none).
                """,
            isReloadable: true
        ) { settings, value throws(SettingError) in
            settings.log.lines.levels = try levels(value)
        },
        choice(
            "request-log",
            of: RequestLog.Selection.allCases,
            """
            Requests to log: none; slow logs slow requests and those with status 500 and above; errors also logs those with status \
            400 and above; all (slow).
            """,
            "slow"
        ) { $0.requests.selection = $1 },
        Setting(
            name: "slow-request",
            placeholder: "milliseconds",
            help: "Duration from which on a request is slow, from its head to the end of the response (1000).",
            defaultText: "1000",
            isReloadable: true
        ) { settings, value throws(SettingError) in
            settings.log.requests.slowTime = try integer(value, in: 1...3_600_000)
        },
    ]

    /// Returns a setting whose value is one of some names.
    private static func choice<Value: Sendable>(
        _ name: String,
        of values: [Value],
        _ help: String,
        _ defaultText: String,
        _ set: @escaping @Sendable (inout LogSettings, Value) -> Void
    ) -> Setting {
        let names = values.map { "\($0)" }
        return Setting(
            name: name,
            placeholder: names.joined(separator: "|"),
            help: help,
            defaultText: defaultText,
            isReloadable: true
        ) { settings, value throws(SettingError) in
            set(&settings.log, try oneOf(values, value))
        }
    }

    private static func oneOf<Value>(_ values: [Value], _ text: String) throws(SettingError) -> Value {
        for value in values where "\(value)" == text { return value }
        throw SettingError(reason: "must be one of " + values.map { "\($0)" }.joined(separator: ", "))
    }

    private static func levels(_ value: String) throws(SettingError) -> [LogLabel: Logger.Level] {
        var levels: [LogLabel: Logger.Level] = [:]
        for part in value.split(separator: ",") {
            let pair = part.split(separator: "=", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            guard pair.count == 2 else { throw SettingError(reason: "each entry must be label=level") }
            let label = try oneOf(LogLabel.allCases, pair[0])
            guard levels[label] == nil else { throw SettingError(reason: "\(label) is there twice") }
            levels[label] = try oneOf(Logger.Level.allCases, pair[1])
        }
        return levels
    }
}
