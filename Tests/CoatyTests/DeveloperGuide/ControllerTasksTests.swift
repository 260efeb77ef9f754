import Coaty
import Logging
import TestSupport
import Testing

/// The examples of the chapters "Threads" and "Logging".
@Suite(.exclusive, .timeLimit(.minutes(1))) struct ControllerTasksTests {
    @Test @ControllerActor func aControllerReadsElsewhereAndLogs() async throws {
        let broker = InMemoryBroker()
        let components = Components(controllers: ["Pump": PumpController.self, "Logs": LogCollectorController.self])
        let options = ControllerOptions(extra: ["logger": Logger(label: "network")])
        let controllers = ControllerConfig(controllerOptions: ["Logs": options])
        let communication = CommunicationOptions(shouldAutoStart: true) { _ in InMemoryBinding(broker: broker) }
        let container = try Container.resolve(
            components: components,
            configuration: Configuration(communication: communication, controllers: controllers),
            logger: Logger(label: "com.example.pump")
        )
        let manager = container.communicationManager
        let events = manager.observeAdvertise(withCoreType: .Log)
        for await state in manager.getCommunicationState() where state == .online { break }

        let logger = Logger(label: "com.example.pump") { CoatyLogHandler(label: $0, communicationManager: manager) }
        logger.warning("the pressure is high", metadata: ["bar": "\(9.5)"])
        let controller: PumpController = try #require(container.getController(name: "Pump"))
        controller.start()
        controller.update()

        var received = events.makeAsyncIterator()
        let first = try #require(try await received.next()?.data.object as? Log)
        #expect(first.name == "com.example.pump" && first.logLabels?["bar"] as? String == "9.5")
        let second = try #require(try await received.next()?.data.object as? Log)
        #expect(second.logMessage == "the pump starts" && second.logTags == ["pump"])
        #expect(second.logHost.hostname == "edge-3" && second.logLabels?["pump"] as? Int == 7)
        #expect(second.custom["shift"] == "night")
        while controller.lastReading == 0 { await Task.yield() }
        #expect(controller.lastReading == 20.5)
        await container.shutdown()
    }
}

private func readMeter() -> Double { 20.5 }

private final class PumpController: Controller {
    private(set) var lastReading = 0.0

    func start() {
        logInfo(message: "the pump starts", tags: ["pump"])
    }

    func update() {
        Task {
            // Reading runs elsewhere, and the assignment on the controllers' actor.
            lastReading = await Task.detached { readMeter() }.value
        }
        .disposed(by: disposeBag)
    }

    override func extendLogObject(log: Log) {
        log.logHost.hostname = "edge-3"
        log.logLabels = ["pump": 7]
        log.custom["shift"] = "night"
    }
}
