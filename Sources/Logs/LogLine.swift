import Foundation
import Logging

/// One line of the log.
package struct LogLine: Sendable {
    /// The format of lines.
    package enum Format: Int, CaseIterable, Sendable {
        /// `2026-11-23T05:14:30.123Z warning broker: not connected to the broker error="connection refused"`
        case text
        /// One JSON object.
        case json
    }

    /// The members that each JSON line has.
    private static let reserved: Set = ["time", "level", "label", "message"]

    let label: LogLabel
    let level: Logger.Level
    let message: String
    /// Ordered by name.
    let fields: [(name: String, value: Logger.MetadataValue)]

    init(_ label: LogLabel, _ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata) {
        self.label = label
        self.level = level
        self.message = LogText.cut(message)
        fields = metadata.map { ($0, $1) }.sorted { $0.name < $1.name }
    }

    /// Returns the written name of a field.
    private static func written(_ name: String) -> String {
        let name = name.replacing(" ", with: "-")
        return reserved.contains(name) ? name + "_" : name
    }

    /// Returns the line with a newline at its end.
    ///
    /// - Parameter time: seconds since 1970.
    func text(_ format: Format, at time: TimeInterval) -> String {
        switch format {
        case .text:
            var line = "\(Self.timestamp(time)) \(level) \(label): \(LogText.escaped(message))"
            for (name, value) in fields {
                line += " \(LogText.escaped(Self.written(name)))=\(LogText.value(LogText.cut(value.description)))"
            }
            return line + "\n"
        case .json:
            var line = #"{"time":"\#(Self.timestamp(time))","level":"\#(level)","label":"\#(label)","message":"#
            LogText.appendJSON(message, to: &line)
            for (name, value) in fields {
                line += ","
                LogText.appendJSON(Self.written(name), to: &line)
                line += ":"
                Self.append(value, to: &line)
            }
            return line + "}\n"
        }
    }

    private static func append(_ value: Logger.MetadataValue, to line: inout String) {
        switch value {
        case .stringConvertible(let number as Int): line += "\(number)"
        case .stringConvertible(let number as Double) where number.isFinite: line += "\(number)"
        case .stringConvertible(let flag as Bool): line += "\(flag)"
        default: LogText.appendJSON(LogText.cut(value.description), to: &line)
        }
    }

    /// Returns a time with milliseconds, in UTC (RFC 3339).
    static func timestamp(_ time: TimeInterval) -> String {
        let milliseconds = Int((time * 1000).rounded(.down))
        var seconds = time_t(milliseconds / 1000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func digits(_ number: some BinaryInteger, _ count: Int = 2) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        return "\(parts.tm_year + 1900)-\(digits(parts.tm_mon + 1))-\(digits(parts.tm_mday))T"
            + "\(digits(parts.tm_hour)):\(digits(parts.tm_min)):\(digits(parts.tm_sec))"
            + ".\(digits(milliseconds % 1000, 3))Z"
    }
}
