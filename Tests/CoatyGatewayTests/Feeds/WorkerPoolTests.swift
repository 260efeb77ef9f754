import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import CoatyGateway

@Suite struct WorkerPoolTests {
    /// A job that takes numbers from an intake, a few in each turn.
    private final class Collector: Job {
        private struct State {
            var intake: [Int] = []
            var collected: [Int] = []
            var random: SeededGenerator
        }

        let ticket = JobTicket()
        private let isInTurn = Atomic(false)
        private let overlaps = Atomic(0)
        private let state: Mutex<State>

        init(seed: UInt64) { state = Mutex(State(random: SeededGenerator(seed: seed))) }

        var collected: [Int] { state.withLock(\.collected) }
        var hasOverlapped: Bool { overlaps.load(ordering: .relaxed) > 0 }

        func append(_ number: Int, _ pool: WorkerPool) {
            state.withLock { $0.intake.append(number) }
            pool.schedule(self)
        }

        func turn() -> TurnEnd {
            if isInTurn.exchange(true, ordering: .sequentiallyConsistent) { overlaps.add(1, ordering: .relaxed) }
            defer { isInTurn.store(false, ordering: .sequentiallyConsistent) }
            return state.withLock { state in
                let count = min(state.intake.count, Int.random(in: 1...3, using: &state.random))
                state.collected += state.intake.prefix(count)
                state.intake.removeFirst(count)
                if state.intake.isEmpty { return .idle }
                return Bool.random(using: &state.random) ? .again : .againLater
            }
        }
    }

    @Test(arguments: [1, 4], 0..<20 as Range<UInt64>)
    func everyScheduleIsFollowedByATurn(_ threads: Int, seed: UInt64) async throws {
        let pool = WorkerPool(name: "test", threads: threads)
        let jobs = (0..<8).map { Collector(seed: seed &* 100 &+ $0) }
        // Before the start, too.
        for job in jobs { job.append(-1, pool) }
        pool.start()
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask {
                    var random = SeededGenerator(seed: seed &+ UInt64(task) &* 7919)
                    // Each task has jobs of its own, whose numbers must stay in order.
                    for number in 0..<300 {
                        jobs[2 * task + Int.random(in: 0...1, using: &random)].append(number, pool)
                        if number % 50 == 0 { await Task.yield() }
                    }
                }
            }
        }
        try await untilTrue("all is done") { pool.isIdle }
        for task in 0..<4 {
            let (one, other) = (jobs[2 * task].collected, jobs[2 * task + 1].collected)
            #expect((one + other).sorted() == [-1, -1] + Array(0..<300))
            #expect(one == one.sorted() && other == other.sorted())
        }
        #expect(!jobs.contains { $0.hasOverlapped })
        await pool.stop()
    }

    private final class Counter: Sendable {
        let value = Atomic(0)
    }

    /// A job that always needs its whole turn. Every tenth turn schedules a cheap job.
    private final class Expensive: Job {
        let ticket = JobTicket()
        let turns: Counter
        private let pool: WorkerPool
        private let cheap = Mutex<[Cheap]>([])

        init(_ turns: Counter, _ pool: WorkerPool) {
            self.turns = turns
            self.pool = pool
        }

        /// For each cheap job, the number of other turns before its own.
        var delays: [Int] { cheap.withLock { $0.compactMap(\.delay) } }

        func turn() -> TurnEnd {
            let limit = TurnLimit()
            while !limit.isOver {}
            let turn = turns.value.add(1, ordering: .relaxed).newValue
            if turn % 10 == 0 {
                let job = Cheap(turns)
                cheap.withLock { $0.append(job) }
                pool.schedule(job)
            }
            return .againLater
        }
    }

    private final class Cheap: Job {
        let ticket = JobTicket()
        private let turns: Counter
        private let before: Int
        private let after = Mutex<Int?>(nil)

        init(_ turns: Counter) {
            self.turns = turns
            before = turns.value.load(ordering: .relaxed)
        }

        var delay: Int? { after.withLock(\.self).map { $0 - before } }

        func turn() -> TurnEnd {
            after.withLock { $0 = turns.value.load(ordering: .relaxed) }
            return .idle
        }
    }

    @Test func expensiveJobsDoNotDelayOthers() async throws {
        let pool = WorkerPool(name: "test", threads: 1)
        let turns = Counter()
        let jobs = (0..<50).map { _ in Expensive(turns, pool) }
        pool.start()
        for job in jobs { pool.schedule(job) }
        try await untilTrue("there were cheap jobs") { jobs.flatMap(\.delays).count >= 50 }
        // In the first turns, the pool does not know which jobs are expensive.
        let delays = jobs.flatMap(\.delays).sorted()
        #expect(delays.dropLast(10).allSatisfy { $0 <= 1 }, "\(delays)")
        await pool.stop()
    }

    @Test func stopDoesNotWaitForLongTurns() async throws {
        final class Stuck: Job {
            let ticket = JobTicket()
            let release = DispatchSemaphore(value: 0)

            func turn() -> TurnEnd {
                release.wait()
                return .again
            }
        }
        let pool = WorkerPool(name: "test", threads: 2)
        let stuck = Stuck()
        pool.start()
        pool.schedule(stuck)
        let duration = await ContinuousClock().measure { await pool.stop() }
        #expect(duration < .seconds(10))
        stuck.release.signal()
        // It is not queued again.
        try await untilTrue("the turn has ended") { pool.isIdle }
    }
}
