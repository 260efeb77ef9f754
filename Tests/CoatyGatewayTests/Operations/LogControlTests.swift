import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import CoatyGateway
@testable import Logs

/// Lines written by loggers.
@Suite(.exclusive) struct LogControlTests {
    private final class Lines: Sendable {
        private let lines = Mutex<[String]>([])

        var all: [String] { lines.withLock(\.self) }
        func append(_ line: String) { lines.withLock { $0.append(line) } }
    }

    private func scene(_ settings: LogControl.Settings) -> (control: LogControl, logger: Logger, lines: Lines) {
        let lines = Lines()
        let control = LogControl(output: LogOutput { lines.append($0) })
        control.apply(settings)
        return (control, Logger(label: "coaty-gateway") { control.handler(label: $0) }, lines)
    }

    /// Returns all lines when they have been written.
    private func written(_ control: LogControl, _ lines: Lines) -> [String] {
        control.finish()
        return lines.all
    }

    private static let hostile = "a\u{1B}[2J\nb\r\u{2028}c\u{202E}\"d\\ = \u{85}"

    @Test func hostileTextStaysInItsLineAndField() throws {
        for format in LogLine.Format.allCases {
            let (control, logger, lines) = scene(LogControl.Settings(format: format))
            logger.warning("\(Self.hostile)", metadata: ["client": "\(Self.hostile)", "level": "critical"])
            let written = written(control, lines)
            let line = try #require(written.first)
            #expect(written.count == 1 && line.hasSuffix("\n"))
            let controls = line.dropLast().unicodeScalars.filter { scalar in
                [.control, .format, .lineSeparator, .paragraphSeparator].contains(scalar.properties.generalCategory)
            }
            #expect(controls.isEmpty, "\(line)")
            guard format == .json else {
                let escaped = #"a\u{1b}[2J\nb\r\u{2028}c\u{202e}\"d\\ = \u{85}"#
                #expect(line.contains(#" client="\#(escaped)" level_=critical"#), "\(line)")
                #expect(line.contains(" warning gateway: a\\u{1b}[2J"))
                continue
            }
            let json = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            #expect(json["message"] as? String == Self.hostile)
            #expect(json["client"] as? String == Self.hostile)
            #expect(json["level"] as? String == "warning" && json["level_"] as? String == "critical")
            #expect(json["label"] as? String == "gateway")
            let time = try #require(json["time"] as? String)
            let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
            #expect(abs(try style.parse(time).timeIntervalSinceNow) < 60)
        }
    }

    @Test func numbersAreJSONNumbers() throws {
        let (control, logger, lines) = scene(LogControl.Settings(format: .json))
        logger.info("x", metadata: ["n": .stringConvertible(7), "ms": .stringConvertible(0.5), "two words": "7"])
        let written = written(control, lines)
        #expect(written.first?.contains(#""ms":0.5,"n":7,"two-words":"7"}"#) == true, "\(written)")
    }

    @Test func longTextIsCut() {
        let (control, logger, lines) = scene(LogControl.Settings())
        let long = String(repeating: "ä", count: 10_000)
        logger.info("\(long)", metadata: ["value": "\(long)"])
        let size = written(control, lines).first?.utf8.count ?? 0
        #expect(size > LogText.maximumLength && size < 3 * LogText.maximumLength)
    }

    @Test func levelsApplyPerLabelAndCanChange() {
        let (control, logger, lines) = scene(LogControl.Settings(level: .warning, levels: [.broker: .debug]))
        let broker = logger.labelled(.broker)
        logger.info("1")
        broker.debug("2")
        broker.trace("3")
        control.apply(LogControl.Settings(level: .info))
        logger.info("4")
        broker.debug("5")
        // Loggers of libraries belong to a label, too.
        Logger(label: "coaty.mdns") { control.handler(label: $0) }.info("6")
        let texts = written(control, lines).map { String($0.split(separator: " ", maxSplits: 1)[1]) }
        #expect(texts == ["debug broker: 2\n", "info gateway: 4\n", "info broker: 6\n"])
    }

    @Test func repetitionsAreCountedUnlessALoggerWritesAll() throws {
        let (control, logger, lines) = scene(LogControl.Settings())
        for _ in 0..<5 { logger.warning("again") }
        for _ in 0..<3 { logger.writingAll().info("asked for") }
        control.finish()
        let texts = lines.all.map { String($0.split(separator: " ", maxSplits: 1)[1]) }
        let asked = Array(repeating: "info gateway: asked for\n", count: 3)
        #expect(texts.dropLast() == ["warning gateway: again\n"] + asked)
        let count = #/warning gateway: again \(repeated 4 times, until [-0-9]{10}T[:.0-9]{12}Z\) repeated=4\n/#
        #expect(try count.wholeMatch(in: texts.last ?? "") != nil, "\(texts)")
    }

    /// The count of messages that have ended must not look like a new message.
    @Test func countsHaveTheTimeOfTheLastRepetition() throws {
        let (control, logger, lines) = scene(LogControl.Settings())
        let start = LogLine.timestamp(Date().timeIntervalSince1970 - 1)
        for _ in 0..<2 { logger.warning("again") }
        Thread.sleep(forTimeInterval: 0.05)
        let line = try #require(written(control, lines).last)
        let until = try #require(line.firstMatch(of: #/^(\S+) .* \(repeated once, at (\S+)\)/#))
        #expect(start < until.2 && until.2 < until.1, "\(line)")
    }

    @Test func messagesAreCountedByLevel() {
        let (control, logger, _) = scene(LogControl.Settings())
        for _ in 0..<3 { logger.warning("again") }
        logger.info("x")
        logger.debug("below the level")
        let counts = control.messages.filter { $0.count > 0 }.map { "\($0.level) \($0.count)" }
        #expect(counts == ["info 1", "warning 3"])
    }

    /// A reader that does not read the log blocks no logger, and lines about requests leave room for other lines.
    @Test func slowReaderDropsLinesWithoutBlocking() throws {
        let (lines, gate) = (Lines(), DispatchSemaphore(value: 0))
        let output = LogOutput { line in
            gate.wait()
            gate.signal()
            lines.append(line)
        }
        let control = LogControl(output: output)
        control.apply(LogControl.Settings())
        let logger = Logger(label: "x") { control.handler(label: $0) }.writingAll()
        let requests = logger.labelled(.requests)
        let text = String(repeating: "x", count: 1000)
        for _ in 0..<2000 { requests.info("\(text)") }
        logger.warning("still written")
        for _ in 0..<2000 { logger.info("\(text)") }
        // There is no room left, not even for the line about dropped lines.
        for _ in 0..<30 { logger.info("x") }
        #expect(control.droppedLines > 2000 - LogOutput.maximumQueued / 1000)
        gate.signal()
        var dropped: Int? {
            lines.all.compactMap { line in
                line.split(separator: "lines=").dropFirst().last.flatMap { Int($0.trimmingCharacters(in: .newlines)) }
            }.first
        }
        try waitUntil("all lines are written or dropped") { lines.all.count - 1 + (dropped ?? 0) == 4031 }
        #expect(dropped == control.droppedLines)
        #expect(lines.all.contains { $0.contains("still written") })
        #expect(lines.all.count * 1000 < LogOutput.maximumQueuedOfRequests + LogOutput.maximumQueued)
    }
}

/// The log settings.
@Suite(.exclusive) struct LogSettingsTests {
    private func settings(_ flags: [String: String]) throws -> LogSettings {
        try GatewaySettings(flags: flags, environment: [:], file: nil).log
    }

    @Test func levelsOfLabels() throws {
        let settings = try settings([
            "log-level": "warning", "log-levels": "broker=debug, http=error", "log-format": "json",
            "request-log": "all",
            "slow-request": "20",
        ])
        #expect(settings.lines.level(of: .broker) == .debug && settings.lines.level(of: .http) == .error)
        #expect(settings.lines.level(of: .gateway) == .warning)
        #expect(
            settings.lines.format == .json && settings.requests.selection == .all && settings.requests.slowTime == 20
        )
        #expect(try self.settings(["log-levels": ""]).lines.levels.isEmpty)
    }

    @Test(arguments: [
        ["log-levels": "broker"], ["log-levels": "brokers=debug"], ["log-levels": "broker=loud"],
        ["log-levels": "broker=debug,broker=info"], ["log-format": "xml"], ["request-log": "some"],
        ["slow-request": "0"],
        ["log-levels": "broker=debug=info"],
    ])
    func wrongValuesAreRefused(_ flags: [String: String]) {
        #expect(throws: InvalidConfiguration.self) { try settings(flags) }
    }
}
