import Logging
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

@Suite(.exclusive) struct IoSourcePublisherTests {
    /// A source whose associations and clock the test controls.
    private struct Scene {
        let broker = TopicBroker()
        let clock = SteeredClock()
        let sourceId: CoatyUUID
        let actorId = CoatyUUID()
        let manager: CommunicationManager
        let publisher: IoSourcePublisher

        init(
            _ strategy: IoSourceBackpressureStrategy?,
            useRawIoValues: Bool? = nil,
            outboxLimits: OutboxLimits = OutboxLimits(),
            logger: Logger = Logger(label: "test")
        ) throws {
            let source = IoSource(
                valueType: "v",
                updateStrategy: strategy,
                useRawIoValues: useRawIoValues,
                // The negotiated rate applies, not this one.
                updateRate: 7,
                name: "source"
            )
            sourceId = source.objectId
            manager = try CommunicationManager(
                identity: Identity(name: "agent"),
                ioNodes: [IoNode(name: "context", ioSources: [source])],
                options: CommunicationOptions(outboxLimits: outboxLimits) { [broker] _ in
                    TopicBinding(broker: broker)
                },
                logger: logger
            )
            publisher = IoSourcePublisher(ioSource: source, communicationManager: manager, clock: clock)
        }

        func join() async throws {
            manager.start()
            try await manager.untilOnline()
        }

        /// Associates the source with an actor, or dissociates it.
        func associate(_ updateRate: Int?, route: String? = "values", actorId: CoatyUUID? = nil) throws {
            manager.handle(
                try .with(
                    ioContextName: "context",
                    ioSourceId: sourceId,
                    ioActorId: actorId ?? self.actorId,
                    associatingRoute: route,
                    updateRate: updateRate
                )
            )
        }

        @discardableResult
        func publish(_ value: Int) throws -> IoSourcePublisher.Outcome {
            try publisher.publish(bytes: Array("\(value)".utf8))
        }

        /// Waits until this number of values has been published, and returns them in order.
        func published(_ count: Int) async throws -> [Int] {
            try await broker.waitForMessages { $0.count { $0.topic == "values" } >= count }
                .filter { $0.topic == "values" }.compactMap { Int(String(decoding: $0.payload, as: UTF8.self)) }
        }
    }

    @Test(arguments: [nil, 0, -1, 100] as [Int?]) func noneStrategyPublishesEachValue(_ rate: Int?) async throws {
        let scene = try Scene(.None)
        try await scene.join()
        try scene.associate(rate)
        for value in 1...20 { #expect(try scene.publish(value) == .published(.sent)) }
        #expect(try await scene.published(20) == Array(1...20))
        await scene.manager.stop()
    }

    @Test(arguments: [nil, .Default, .Sample, .Throttle] as [IoSourceBackpressureStrategy?])
    func eachValueIsPublishedWithoutNegotiatedRate(_ strategy: IoSourceBackpressureStrategy?) async throws {
        let scene = try Scene(strategy)
        try await scene.join()
        try scene.associate(nil)
        for value in 1...3 { #expect(try scene.publish(value) == .published(.sent)) }
        try scene.associate(0)
        #expect(try scene.publish(4) == .published(.sent))
        #expect(try await scene.published(4) == [1, 2, 3, 4])
        await scene.manager.stop()
    }

    @Test(arguments: [nil, .Default, .Sample] as [IoSourceBackpressureStrategy?])
    func samplePublishesTheLatestValueOfAnInterval(_ strategy: IoSourceBackpressureStrategy?) async throws {
        let scene = try Scene(strategy)
        try await scene.join()
        scene.clock.advance(byMilliseconds: 30)
        try scene.associate(100)
        try await scene.clock.untilSleeping()
        scene.clock.advance(byMilliseconds: 40)
        // The intervals end at 130, 230, 330…
        for value in 1...1000 { #expect(try scene.publish(value) == .pending) }
        try await scene.clock.untilSleeping(untilMilliseconds: 130)
        scene.clock.advance(byMilliseconds: 60)
        #expect(try await scene.published(1) == [1000])
        // No timer runs while no value is pending.
        try await scene.clock.untilSleeping()
        scene.clock.advance(byMilliseconds: 1250)
        try scene.publish(2)
        try await scene.clock.untilSleeping(untilMilliseconds: 1430)
        scene.clock.advance(byMilliseconds: 49)
        try scene.publish(3)
        scene.clock.advance(byMilliseconds: 1)
        #expect(try await scene.published(2) == [1000, 3])
        // A value at the end of an interval belongs to the next interval.
        try scene.publish(4)
        try await scene.clock.untilSleeping(untilMilliseconds: 1530)
        scene.clock.advance(byMilliseconds: 100)
        #expect(try await scene.published(3) == [1000, 3, 4])
        await scene.manager.stop()
    }

    @Test func throttleWaitsForQuiet() async throws {
        let scene = try Scene(.Throttle)
        try await scene.join()
        try scene.associate(100)
        try scene.publish(1)
        try await scene.clock.untilSleeping(untilMilliseconds: 100)
        scene.clock.advance(byMilliseconds: 60)
        try scene.publish(2)
        scene.clock.advance(byMilliseconds: 60)
        try await scene.clock.untilSleeping(untilMilliseconds: 160)
        scene.clock.advance(byMilliseconds: 40)
        #expect(try await scene.published(1) == [2])
        await scene.manager.stop()
    }

    @Test func continuousThrottledSourcePublishesNothing() async throws {
        let scene = try Scene(.Throttle)
        try await scene.join()
        try scene.associate(100)
        for value in 1...50 {
            try scene.publish(value)
            scene.clock.advance(byMilliseconds: 90)
        }
        // The last value was published at 4410.
        try await scene.clock.untilSleeping(untilMilliseconds: 4510)
        scene.clock.advance(byMilliseconds: 10)
        #expect(try await scene.published(1) == [50])
        await scene.manager.stop()
    }

    @Test(arguments: [IoSourceBackpressureStrategy.Sample, .Throttle])
    func rateChangeDiscardsThePendingValue(_ strategy: IoSourceBackpressureStrategy) async throws {
        let scene = try Scene(strategy)
        try await scene.join()
        try scene.associate(100)
        scene.clock.advance(byMilliseconds: 20)
        try scene.publish(1)
        // An equal association, and another actor with the same rate, change nothing.
        try scene.associate(100)
        try scene.associate(100, actorId: CoatyUUID())
        try await scene.clock.untilSleeping(untilMilliseconds: strategy == .Sample ? 100 : 120)
        try scene.associate(200)
        try await scene.clock.untilSleeping()
        // The intervals start again with the new rate.
        scene.clock.advance(byMilliseconds: 150)
        try scene.publish(2)
        try await scene.clock.untilSleeping(untilMilliseconds: strategy == .Sample ? 220 : 370)
        scene.clock.advance(byMilliseconds: 200)
        #expect(try await scene.published(1) == [2])
        try scene.publish(3)
        try scene.associate(nil)
        #expect(try scene.publish(4) == .published(.sent))
        #expect(try await scene.published(2) == [2, 4])
        await scene.manager.stop()
    }

    @Test(arguments: [IoSourceBackpressureStrategy.None, .Sample, .Throttle])
    func discardsValuesWhileNotAssociated(_ strategy: IoSourceBackpressureStrategy) async throws {
        let scene = try Scene(strategy)
        try await scene.join()
        #expect(try scene.publish(1) == .discarded)
        let other = CoatyUUID()
        try scene.associate(100)
        try scene.associate(100, actorId: other)
        if strategy != .None { #expect(try scene.publish(2) == .pending) }
        try scene.associate(nil, route: nil)
        if strategy != .None { try await scene.clock.untilSleeping(untilMilliseconds: 100) }
        // One association is left after this one is removed.
        try scene.associate(nil, route: nil, actorId: other)
        try await scene.clock.untilSleeping()
        #expect(try scene.publish(3) == .discarded)
        scene.clock.advance(byMilliseconds: 1000)
        try scene.associate(nil)
        #expect(try scene.publish(4) == .published(.sent))
        #expect(try await scene.published(1) == [4])
        await scene.manager.stop()
    }

    @Test func stopDiscardsPendingValueAndRestartContinues() async throws {
        let scene = try Scene(.Sample)
        try await scene.join()
        try scene.associate(100)
        try scene.publish(1)
        try await scene.clock.untilSleeping(untilMilliseconds: 100)
        await scene.manager.stop()
        try await scene.clock.untilSleeping()
        #expect(try scene.publish(2) == .discarded)
        try await scene.join()
        try scene.associate(100)
        #expect(try scene.publish(3) == .pending)
        try await scene.clock.untilSleeping(untilMilliseconds: 100)
        scene.clock.advance(byMilliseconds: 100)
        #expect(try await scene.published(1) == [3])
        await scene.manager.stop()
    }

    @Test func cancelledOrReleasedPublisherLeavesNoTimer() async throws {
        let scene = try Scene(.Throttle)
        try scene.associate(100)
        try scene.publish(1)
        try await scene.clock.untilSleeping(untilMilliseconds: 100)
        scene.publisher.cancel()
        try await scene.clock.untilSleeping()
        #expect(try scene.publish(2) == .discarded)

        let source = IoSource(valueType: "v", updateStrategy: .Sample, name: "source", objectId: scene.sourceId)
        var released: IoSourcePublisher? = IoSourcePublisher(
            ioSource: source,
            communicationManager: scene.manager,
            clock: scene.clock
        )
        weak let leaked = released
        #expect(try released?.publish(bytes: [UInt8(ascii: "3")]) == .pending)
        try await scene.clock.untilSleeping(untilMilliseconds: 100)
        released = nil
        try await scene.clock.untilSleeping()
        #expect(leaked == nil)
        #expect(scene.manager.queued.publications == 0)
    }

    @Test func incompatibleValuesAreRefused() throws {
        let scene = try Scene(.None)
        try scene.associate(nil)
        let other = IoSource(valueType: "v", name: "other")
        #expect(throws: CommunicationError.incompatibleIoValue) {
            try scene.publisher.publish(.with(ioSource: other, value: 1))
        }
        let raw = IoSource(valueType: "v", useRawIoValues: true, name: "raw", objectId: scene.sourceId)
        #expect(throws: CommunicationError.incompatibleIoValue) {
            try scene.publisher.publish(.with(ioSource: raw, value: [1] as [UInt8]))
        }
        #expect(throws: CommunicationError.incompatibleIoValue) { try IoValueEvent.with(ioSource: raw, json: [0x31]) }
        #expect(throws: PayloadError.self) { try scene.publisher.publish(bytes: Array("{".utf8)) }
        #expect(throws: PayloadError.self) { try IoValueEvent.with(ioSource: other, json: Array("{".utf8)) }
        #expect(scene.manager.queued.publications == 0)
    }

    @Test func keepsEveryDigitOfAJSONText() async throws {
        let scene = try Scene(.Sample)
        try await scene.join()
        try scene.associate(100)
        let text = Array(#"{"b" : 1.000000000000000000001, "a": 1e400}"#.utf8)
        let source = IoSource(valueType: "v", name: "source", objectId: scene.sourceId)
        try scene.publisher.publish(.with(ioSource: source, json: text))
        try await scene.clock.untilSleeping(untilMilliseconds: 100)
        scene.clock.advance(byMilliseconds: 100)
        let messages = try await scene.broker.waitForMessages { $0.contains { $0.topic == "values" } }
        #expect(messages.last { $0.topic == "values" }?.payload == text)
        await scene.manager.stop()
    }

    @Test func publishesRawBytesAsTheyAre() async throws {
        let scene = try Scene(.None, useRawIoValues: true)
        try await scene.join()
        try scene.associate(nil)
        #expect(try scene.publisher.publish(bytes: [0, 255, 123]) == .published(.sent))
        let messages = try await scene.broker.waitForMessages { $0.contains { $0.topic == "values" } }
        #expect(messages.last { $0.topic == "values" }?.payload == [0, 255, 123])
        await scene.manager.stop()
    }

    @Test func extremeRatesAreAccepted() async throws {
        let scene = try Scene(.Sample)
        try scene.associate(1 << 62)
        #expect(try scene.publish(1) == .pending)
        try await scene.clock.untilSleeping(untilMilliseconds: Int(Int32.max))
        try scene.associate(.min)
        #expect(try scene.publish(2) == .published(.deferred))
    }

    @Test func droppedValuesAreLoggedPeriodically() async throws {
        let log = Recorder<String>()
        let scene = try Scene(
            .Sample,
            outboxLimits: OutboxLimits(publications: 1),
            logger: Logger(label: "test") { _ in RecordingLogHandler(log: log) }
        )
        try scene.associate(nil)
        #expect(try scene.publish(0) == .published(.deferred))
        #expect(throws: CommunicationError.queueFull(publications: 1, bytes: 7)) { try scene.publish(0) }
        try scene.associate(100)
        try await withPatience {
            var value = 0
            while log.values.count < 4 {
                value += 1
                try scene.publish(value)
                scene.clock.advance(byMilliseconds: 100)
                try await Task.sleep(for: .milliseconds(1))
            }
            #expect(value >= 8)
        }
        #expect(log.values == ["1", "2", "4", "8"])
    }
}

/// A log handler that records the reported numbers of dropped values.
private struct RecordingLogHandler: LogHandler {
    let log: Recorder<String>
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        if let count = event.metadata?["lost so far"] { log.append("\(count)") }
    }
}
