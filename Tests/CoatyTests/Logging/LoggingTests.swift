import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

@ControllerActor @Suite(.exclusive) struct LoggingTests {
    @Test func controllerLogsAreAdvertised() async throws {
        let broker = TopicBroker()
        let container = try agent(broker, [("LogCtl", TalkativeController.self)], agentInfo: agentInfo)
        let controller: TalkativeController = try #require(container.getController(name: "LogCtl"))
        try await container.communicationManager.untilOnline()
        controller.logDebug(message: "d")
        controller.logInfo(message: "hello", tags: ["tag1"])
        controller.logWarning(message: "w")
        controller.logError(error: TimedOut(), message: "e")
        controller.logFatal(error: TimedOut(), message: "f")
        let logs = try await broker.waitForLogs(5)
        #expect(logs.map(\.logLevel) == [.debug, .info, .warning, .error, .fatal])
        #expect(logs.map(\.logMessage) == ["d", "hello", "w", "e: TimedOut()", "f: TimedOut()"])
        #expect(logs[1].logTags == ["tag1"])
        #expect(logs.allSatisfy { $0.name == "LogCtl" && $0.logLabels?["operatingState"] as? String == "started" })
        #expect(logs.allSatisfy { $0.logHost.hostname == "host-7" && $0.custom["shift"] == "night" })
        #expect(logs[0].logHost.pid == Double(ProcessInfo.processInfo.processIdentifier))
        #expect(
            logs[0].logHost.agentInfo == [
                "packageInfo": ["name": "p", "version": "1"],
                "buildInfo": ["buildDate": "today", "buildMode": "test"], "configInfo": ["serviceHost": "h"],
            ]
        )
        let date = try Regex(#"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"#)
        #expect(try logs.allSatisfy { try date.wholeMatch(in: $0.logDate) != nil })
        // As recorded from the reference, it is published on the core type's topic only.
        #expect(broker.published.count { $0.topic.contains("coaty.Log") } == 0)
        await container.shutdown()
    }

    @Test func loggerMessagesArePublished() async throws {
        let broker = TopicBroker()
        let container = try agent(broker, [])
        let manager = container.communicationManager
        try await manager.untilOnline()
        var logger = Logger(label: "com.example") {
            CoatyLogHandler(label: $0, communicationManager: manager, logLevel: .trace)
        }
        logger[metadataKey: "always"] = "there"
        for level in Logger.Level.allCases {
            logger.log(level: level, "m", metadata: ["n": .stringConvertible(1), "list": ["a", ["k": "v"]]])
        }
        logger.info("\(String(repeating: "x", count: 3000))")
        logger.info("large", metadata: ["l": .array((0..<100).map { _ in "\(String(repeating: "y", count: 2000))" })])
        logger.logLevel = .error
        logger.info("not this")
        logger.error("last", source: "Coaty")
        logger.error("last")
        let logs = try await broker.waitForLogs(Logger.Level.allCases.count + 3)
        #expect(logs.prefix(7).map(\.logLevel) == [.debug, .debug, .info, .info, .warning, .error, .fatal])
        #expect(logs.allSatisfy { $0.name == "com.example" })
        #expect(AnyCodable(any: logs[0].logLabels ?? [:]) == ["always": "there", "n": 1, "list": ["a", ["k": "v"]]])
        #expect(logs[7].logMessage.count == CoatyLogHandler.maximumLength)
        #expect(logs[8].logMessage == "large" && logs[8].logLabels == nil)
        #expect(logs.dropFirst(9).map(\.logMessage) == ["last"])
        await container.shutdown()
    }

    @Test func logsLeaveRoomForEventsAndDropsAreReported() async throws {
        let broker = TopicBroker()
        broker.setAvailable(false)
        let container = try agent(broker, [])
        let manager = container.communicationManager
        let logger = Logger(label: "l") { CoatyLogHandler(label: $0, communicationManager: manager) }
        for index in 0..<(CoatyLogHandler.maximumWaiting + 7) { logger.info("\(index)") }
        #expect(manager.queued.publications == CoatyLogHandler.maximumWaiting)
        broker.setAvailable(true)
        _ = try await broker.waitForLogs(CoatyLogHandler.maximumWaiting)
        logger.info("after")
        let last = try #require(try await broker.waitForLogs(CoatyLogHandler.maximumWaiting + 1).last)
        #expect(last.logMessage == "after")
        #expect(last.logLabels?["droppedBefore"] as? Int == 7)
        await container.shutdown()
    }

    @Test func logsDuringPublishingAreNotPublished() async throws {
        let binding = LoggingBinding()
        let manager = try CommunicationManager(
            identity: Identity(),
            options: CommunicationOptions { _ in binding }
        )
        let logger = Logger(label: "l") { CoatyLogHandler(label: $0, communicationManager: manager) }
        binding.logger.withLock { $0 = logger }
        manager.start()
        let link = try #require(binding.recording.link)
        link.opened()
        while link.nextOperation() != nil { link.publicationSent() }
        let before = binding.recording.wakes
        logger.info("one")
        #expect(binding.recording.wakes == before + 1)
        #expect(manager.queued.publications == 1)
        await manager.stop()
    }

    @Test func collectsLogsOfTheNetwork() async throws {
        let broker = TopicBroker()
        let lines = Recorder<LineRecordingLogHandler.Line>()
        let collecting = Logger(label: "collected") { _ in LineRecordingLogHandler(lines: lines) }
        let container = try agent(broker, [("Collector", LogCollectorController.self)], extra: ["logger": collecting])
        try await container.communicationManager.untilOnline()
        _ = try await broker.waitForMessages(1)
        let log = Log(
            logLevel: .fatal,
            logMessage: "one\nline\u{1B}[31m\u{202E}" + String(repeating: "x", count: 5000),
            logDate: "2026-11-21T08:23:02.075Z",
            name: "evil\r\nname",
            logTags: (0..<50).map { "tag\($0)\u{7}" },
            logHost: LogHost(pid: 7, hostname: "h\u{0}")
        )
        try container.communicationManager.publishAdvertise(.with(object: log))
        let line = try #require(try await lines.wait(for: 1).first)
        #expect(line.level == .critical)
        #expect(line.message.hasPrefix("one\u{FFFD}line\u{FFFD}[31m\u{FFFD}xxx"))
        #expect(line.message.unicodeScalars.count == LogCollectorController.maximumMessageLength + 1)
        #expect(line.metadata["name"] == "evil\u{FFFD}\u{FFFD}name")
        #expect(line.metadata["source"] == "\(container.identity.objectId)")
        #expect(line.metadata["host"] == "h\u{FFFD}")
        #expect(line.metadata["pid"] == "7")
        guard case .array(let tags) = line.metadata["tags"] else { throw TimedOut() }
        #expect(tags.count == LogCollectorController.maximumTags && tags[0] == "tag0\u{FFFD}")
        await container.shutdown()
    }

    private var agentInfo: AgentInfo {
        AgentInfo(
            packageInfo: .init(name: "p", version: "1"),
            buildInfo: .init(buildDate: "today", buildMode: "test"),
            configInfo: .init(serviceHost: "h")
        )
    }

    private func agent(
        _ broker: TopicBroker,
        _ controllers: [(String, Controller.Type)],
        agentInfo: AgentInfo? = nil,
        extra: sending [String: Any] = [:]
    ) throws -> Container {
        let communication = CommunicationOptions(shouldAutoStart: true) { _ in TopicBinding(broker: broker) }
        let container = try Container.resolve(
            components: Components(controllers: [:]),
            configuration: Configuration(common: CommonOptions(agentInfo: agentInfo), communication: communication)
        )
        for (name, type) in controllers {
            try container.registerController(
                name: name,
                controllerType: type,
                controllerOptions: ControllerOptions(extra: extra)
            )
        }
        return container
    }
}

private final class TalkativeController: Controller {
    private let hostname = "host-7"

    override func extendLogObject(log: Log) {
        log.logHost.hostname = hostname
        log.logLabels = [
            "operatingState": self.communicationManager.operatingState
        ]
        log.custom["shift"] = "night"
    }
}

/// A binding that writes to the log whenever it is woken.
private final class LoggingBinding: TopicNamingBinding {
    let recording = RecordingBinding()
    let logger = Mutex<Logger?>(nil)

    func join(_ session: BindingSession) { recording.join(session) }
    func wake() {
        recording.wake()
        logger.withLock(\.self)?.error("woken")
    }
    func leave() async { await recording.leave() }
}

struct LineRecordingLogHandler: LogHandler {
    struct Line: Sendable {
        let level: Logger.Level
        let message: String
        let metadata: Logger.Metadata
    }

    let lines: Recorder<Line>
    var logLevel = Logger.Level.trace
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        lines.append(Line(level: event.level, message: "\(event.message)", metadata: event.metadata ?? [:]))
    }
}

extension TopicBroker {
    fileprivate func waitForLogs(_ count: Int) async throws -> [Log] {
        try await waitForMessages { $0.count { $0.topic.contains("/ADV:Log/") } >= count }
            .filter { $0.topic.contains("/ADV:Log/") }
            .compactMap { try AdvertiseEvent(payload: Payload($0.payload)).data.object as? Log }
    }
}
