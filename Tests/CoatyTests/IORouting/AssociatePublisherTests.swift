import Logging
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// A publisher of associations whose share of the outbox is used up.
@Suite(.exclusive, .timeLimit(.minutes(1))) struct AssociatePublisherTests {
    /// A publisher with a share of 5, and a session that the test controls.
    private struct Scene {
        let binding = RecordingBinding()
        let clock = SteeredClock()
        let manager: CommunicationManager
        let publisher: AssociatePublisher
        /// The pairs whose state was looked up.
        let lookups = Recorder<CoatyUUID>()

        init() throws {
            manager = try CommunicationManager(
                identity: Identity(name: "router"),
                options: CommunicationOptions(outboxLimits: OutboxLimits(publications: 10)) { [binding] _ in binding }
            )
            publisher = AssociatePublisher(
                communicationManager: manager,
                ioContextName: "ctx",
                logger: Logger(label: "test"),
                executor: RoutingExecutor(),
                clock: clock
            )
            manager.start()
        }

        func goOnline() async throws {
            binding.link?.opened()
            binding.link?.settle()
            await publisher.resume(in: try #require(manager.onlinePeriod))
        }

        func publish(_ count: Int) async {
            var changes = IoAssociationChanges()
            changes.added = (0..<count).map { IoAssociation(ioSourceId: "s", ioActorId: CoatyUUID(wire: "a\($0)")) }
            await publisher.publish(changes) { [lookups] _, actorId in
                lookups.append(actorId)
                return ("route", nil)
            }
        }

        /// Writes everything that is queued.
        ///
        /// - Returns: the number of Associate events.
        func write() -> Int {
            var count = 0
            while let operation = binding.link?.nextOperation() {
                guard case .publish(let publication) = operation else { continue }
                binding.link?.publicationSent()
                if publication.topic.contains("/ASC:") { count += 1 }
            }
            return count
        }
    }

    @Test func publisherWaitsForTheConnection() async throws {
        let scene = try Scene()
        for _ in 0..<3 { await scene.publish(20) }
        #expect(scene.manager.queued.publications == 0)
        #expect(scene.lookups.values.isEmpty)
        try await scene.goOnline()
        // Its share is full.
        #expect(scene.manager.queued.publications == 5)
        #expect(scene.lookups.values.count == 6)
        try await untilAllAreWritten(scene)
        await scene.manager.stop()
    }

    @Test func publisherContinuesWhenTheOutboxHasRoom() async throws {
        let scene = try Scene()
        try await scene.goOnline()
        await scene.publish(20)
        #expect(scene.lookups.values.count == 6)
        try await untilAllAreWritten(scene)
        await scene.publisher.finish()
        await scene.manager.stop()
    }

    /// Each of 20 pairs is published once.
    private func untilAllAreWritten(_ scene: Scene) async throws {
        try await withPatience {
            var written = 0
            while written < 20 {
                written += scene.write()
                try await Task.sleep(for: .milliseconds(1))
            }
            #expect(written == 20)
        }
    }

    @Test func finishEndsWhenTheConnectionIsLost() async throws {
        let scene = try Scene()
        try await scene.goOnline()
        await scene.publish(20)
        let finishing = Task { await scene.publisher.finish() }
        try await scene.clock.untilSleeping(untilMilliseconds: 5_000)
        scene.binding.link?.closed()
        try await withPatience { await finishing.value }
        await scene.manager.stop()
    }

    @Test func finishEndsAfterItsTime() async throws {
        let scene = try Scene()
        try await scene.goOnline()
        await scene.publish(20)
        let finishing = Task { await scene.publisher.finish() }
        try await scene.clock.untilSleeping(untilMilliseconds: 5_000)
        scene.clock.advance(byMilliseconds: 5_000)
        try await withPatience { await finishing.value }
        await scene.manager.stop()
    }

    @Test func finishWaitsUntilEverythingIsPublished() async throws {
        let scene = try Scene()
        try await scene.goOnline()
        await scene.publish(20)
        let finished = Recorder<Bool>()
        let finishing = Task {
            await scene.publisher.finish()
            finished.append(true)
        }
        try await scene.clock.untilSleeping(untilMilliseconds: 5_000)
        #expect(finished.values.isEmpty)
        let writing = Task {
            var written = 0
            while finished.values.isEmpty {
                written += scene.write()
                try await Task.sleep(for: .milliseconds(1))
            }
            return written + scene.write()
        }
        try await withPatience { await finishing.value }
        #expect(try await writing.value == 20)
        await scene.manager.stop()
    }
}
