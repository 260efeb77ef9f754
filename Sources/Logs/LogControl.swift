import Dispatch
import Foundation
import HTTPServer
package import Logging
import Synchronization

/// The level of each log label, and the format. Both can change while the gateway runs.
///
/// Every part of the gateway has copies of loggers. Their handlers read the level here; the level of a logger has no
/// effect.
package final class LogControl: Sendable {
    /// The instance of the process.
    package static let standard = LogControl(output: .standardError)

    package struct Settings: Sendable, Equatable {
        package var format: LogLine.Format
        /// The minimum level of logged messages, for labels without a specific level.
        package var level: Logger.Level
        package var levels: [LogLabel: Logger.Level]

        package init(
            format: LogLine.Format = .text,
            level: Logger.Level = .info,
            levels: [LogLabel: Logger.Level] = [:]
        ) {
            (self.format, self.level, self.levels) = (format, level, levels)
        }

        func level(of label: LogLabel) -> Logger.Level { levels[label] ?? level }
    }

    private struct State {
        var repetitions = Repetitions()
        /// Whether summaries will be written at the end of their interval.
        var isWaiting = false
    }

    /// Interval of the checks for ended intervals while messages are counted.
    private static let checkInterval = DispatchTimeInterval.seconds(1)

    private let output: LogOutput
    /// Indices of `Logger.Level.allCases`, by label.
    private let levels = InlineArray<10, Atomic<Int>> { _ in Atomic(LogControl.index(of: .info)) }
    private let format = Atomic(LogLine.Format.text.rawValue)
    /// The messages of each level.
    private let counts = InlineArray<7, Atomic<Int>> { _ in Atomic(0) }
    private let state = Mutex(State())

    init(output: LogOutput) { self.output = output }

    /// Returns a log handler. Loggers of libraries get the label that fits best.
    package func handler(label: String) -> any LogHandler {
        GatewayLogHandler(control: self, label: LogLabel(ofLogger: label))
    }

    /// Applies settings to all lines from now on.
    package func apply(_ settings: Settings) {
        format.store(settings.format.rawValue, ordering: .relaxed)
        for label in LogLabel.allCases {
            levels[label.rawValue].store(Self.index(of: settings.level(of: label)), ordering: .relaxed)
        }
    }

    /// Writes the counts of repeated messages, and waits a moment for queued lines.
    package func finish() {
        let summaries = state.withLock { $0.repetitions.expire(at: nil) }
        for summary in summaries { write(summary) }
        output.flush()
    }

    /// Returns the minimum written level of a label.
    func level(of label: LogLabel) -> Logger.Level {
        Logger.Level.allCases[levels[label.rawValue].load(ordering: .relaxed)]
    }

    /// - Parameter countsRepetitions: whether a repeated line is counted instead of written.
    func write(_ line: LogLine, countsRepetitions: Bool) {
        counts[Self.index(of: line.level)].add(1, ordering: .relaxed)
        guard countsRepetitions else { return write(line) }
        var fields = Hasher()
        for (name, value) in line.fields {
            fields.combine(name)
            fields.combine(value.description)
        }
        let message = Repetitions.Message(label: line.label, level: line.level, text: line.message)
        let variant = fields.finalize()
        let (isWritten, ended, mustWait) = state.withLock { state in
            let (isWritten, ended) = state.repetitions.take(message, variant: variant, at: .now)
            guard !isWritten, !state.isWaiting else { return (isWritten, ended, false) }
            state.isWaiting = true
            return (isWritten, ended, true)
        }
        for summary in ended { write(summary) }
        if isWritten { write(line) }
        if mustWait { waitForEnds() }
    }

    private func waitForEnds() {
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.checkInterval) { [weak self] in
            guard let self else { return }
            let (ended, mustWait) = state.withLock { state in
                let ended = state.repetitions.expire(at: .now)
                state.isWaiting = state.repetitions.hasCounted
                return (ended, state.isWaiting)
            }
            for summary in ended { write(summary) }
            if mustWait { waitForEnds() }
        }
    }

    private func write(_ summary: Repetitions.Summary) {
        let message = summary.message
        // The line is written later: without the time it would look like a new message.
        let age = (ContinuousClock.now - summary.last) / .seconds(1)
        let last = LogLine.timestamp(Date().timeIntervalSince1970 - age)
        let times = summary.count == 1 ? "once, at" : "\(summary.count) times, until"
        write(
            LogLine(
                message.label,
                message.level,
                "\(message.text) (repeated \(times) \(last))",
                ["repeated": .stringConvertible(summary.count)]
            )
        )
    }

    private func write(_ line: LogLine) {
        let format = LogLine.Format(rawValue: format.load(ordering: .relaxed)) ?? .text
        let text = line.text(format, at: Date().timeIntervalSince1970)
        output.write(text, isOfRequest: line.label == .requests) { dropped in
            let fields: Logger.Metadata = ["lines": .stringConvertible(dropped)]
            return LogLine(.gateway, .warning, "log lines were dropped: the log is not read fast enough", fields)
                .text(format, at: Date().timeIntervalSince1970)
        }
    }

    // MARK: - Counts

    /// The messages of each level that were written, or counted because they repeat.
    package var messages: [(level: Logger.Level, count: Int)] {
        Logger.Level.allCases.map { ($0, counts[Self.index(of: $0)].load(ordering: .relaxed)) }
    }

    /// The number of lines that were dropped because the output was too slow.
    package var droppedLines: Int { output.dropped }

    private static func index(of level: Logger.Level) -> Int { Logger.Level.allCases.firstIndex(of: level) ?? 0 }
}

/// Passes the messages of a logger to its ``LogControl``.
struct GatewayLogHandler: LogHandler {
    let control: LogControl
    var label: LogLabel
    var countsRepetitions = true
    var metadata: Logger.Metadata = [:]

    var logLevel: Logger.Level {
        get { control.level(of: label) }
        set {}
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    init(control: LogControl, label: LogLabel) {
        self.control = control
        self.label = label
    }

    func log(event: LogEvent) {
        var fields = metadata
        if let own = event.metadata { fields.merge(own) { $1 } }
        if let error = event.error { fields["error"] = "\(error)" }
        // Last, so that no other field can be mistaken for the id of a request.
        if let identity = RequestIdentity.current {
            if let id = identity.id { fields["id"] = .string(id) }
            if let trace = identity.trace { fields["trace"] = .string(trace) }
        }
        control.write(
            LogLine(label, event.level, event.message.description, fields),
            countsRepetitions: countsRepetitions
        )
    }
}
