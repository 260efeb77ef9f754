import Coordination
import Dispatch
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import CoatyGateway

@Suite(.exclusive) struct BoundedStopTests {
    /// A component that never stops, and optionally blocks one of the threads that tasks share.
    private struct Stuck: Component {
        let blocksThread: Bool

        func start() async {}

        func stop() async {
            if blocksThread { await onBlockingThread { DispatchSemaphore(value: 0).wait() } }
            while true { try? await Task.sleep(for: .seconds(60)) }
        }
    }

    /// A component whose `stop()` returns after ``end()``.
    private final class Late: Component {
        private let ends = AsyncStream.makeStream(of: Void.self)

        func start() async {}

        func stop() async { for await _ in ends.stream {} }

        func end() { ends.continuation.finish() }
    }

    private final class Quick: Component {
        private let stopped = Atomic(false)
        var hasStopped: Bool { stopped.load(ordering: .relaxed) }

        func start() async {}

        func stop() async { stopped.store(true, ordering: .relaxed) }
    }

    private func bounded(
        _ name: String,
        _ component: some Component,
        _ limit: Duration,
        _ clock: StopClock
    ) -> some Component {
        BoundedStop(name: name, component: component, limit: limit, clock: clock, logger: Logger(label: "test"))
    }

    @Test(arguments: [true, false]) func stuckComponentDoesNotBlockTheStop(blocksThread: Bool) async throws {
        let clock = StopClock()
        let quick = Quick()
        let root = Coordinator(name: "root", component: GatewayRoot())
        try await root.start()
        let first = bounded("quick", quick, .seconds(5), clock)
        try await root.start(Coordinator(name: "quick", component: first))
        let second = bounded("stuck", Stuck(blocksThread: blocksThread), .milliseconds(200), clock)
        try await root.start(Coordinator(name: "stuck", component: second))
        let began = ContinuousClock.now
        await root.stop()
        #expect(quick.hasStopped)
        #expect(clock.stopping == ["stuck"])
        #expect((.milliseconds(200)...(.seconds(3))).contains(.now - began))
    }

    @Test func lateComponentHasTheRestOfTheTime() async throws {
        let clock = StopClock()
        let late = Late()
        await bounded("late", late, .zero, clock).stop()
        #expect(clock.stopping == ["late"])
        async let hasStopped = clock.untilStopped()
        late.end()
        #expect(await hasStopped)
        #expect(clock.stopping.isEmpty)
    }

    @Test func componentsShareOneClock() async throws {
        let clock = StopClock(limit: .milliseconds(300))
        let root = Coordinator(name: "root", component: GatewayRoot())
        try await root.start()
        for number in 0..<10 {
            let component = bounded("\(number)", Stuck(blocksThread: false), .milliseconds(200), clock)
            try await root.start(Coordinator(name: "\(number)", component: component))
        }
        let began = ContinuousClock.now
        await root.stop()
        #expect(clock.stopping == (0..<10).reversed().map(String.init))
        #expect(await !clock.untilStopped())
        #expect((.milliseconds(300)...(.seconds(3))).contains(.now - began))
    }
}
