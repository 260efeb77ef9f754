import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import Base

@Suite(.exclusive) struct WorkerPoolTests {
    /// A job that removes numbers from its intake, a few in each turn.
    private final class Collector: Job {
        private struct State {
            var intake: [Int] = []
            var collected: [Int] = []
            var random: SeededGenerator
        }

        let ticket: JobTicket
        private let isInTurn = Atomic(false)
        private let overlaps = Atomic(0)
        private let state: Mutex<State>

        init(seed: UInt64, _ client: WorkRate?) {
            ticket = JobTicket(isUrgent: client == nil, client: client)
            state = Mutex(State(random: SeededGenerator(seed: seed)))
        }

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
                ticket.client?.spend(Int.random(in: 0...1_000, using: &state.random))
                let count = min(state.intake.count, Int.random(in: 1...3, using: &state.random))
                state.collected += state.intake.prefix(count)
                state.intake.removeFirst(count)
                if state.intake.isEmpty { return .idle }
                return .again
            }
        }
    }

    @Test(arguments: [1, 4], 0..<20 as Range<UInt64>)
    func everyScheduledJobGetsATurn(_ threads: Int, seed: UInt64) async throws {
        let pool = WorkerPool(name: "test", threads: threads)
        // Some of the clients are overdrawn at times; all others share the first queue.
        let total = WorkBucket(stepsPerSecond: 10_000_000)
        let clients = [nil, WorkRate(within: total), nil, WorkRate(within: total)]
        let jobs = (0..<8).map { Collector(seed: seed &* 100 &+ $0, clients[Int($0 % 4)]) }
        // Jobs can be added before the start.
        for job in jobs { job.append(-1, pool) }
        pool.start()
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask {
                    var random = SeededGenerator(seed: seed &+ UInt64(task) &* 7919)
                    // Each task uses separate jobs, whose numbers must stay in order.
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

    // MARK: - Fairness

    /// A log of the jobs' turns.
    private final class Order: Sendable {
        private let names = Mutex<[String]>([])

        var all: [String] { names.withLock(\.self) }

        func append(_ name: String) { names.withLock { $0.append(name) } }
    }

    /// A job with a given number of turns.
    private final class Named: Job {
        let ticket: JobTicket
        private let name: String
        private let order: Order
        private let left: Mutex<Int>
        private let onTurn: @Sendable () -> Void

        init(
            _ name: String,
            _ order: Order,
            turns: Int,
            isUrgent: Bool = false,
            _ client: WorkRate? = nil,
            onTurn: @escaping @Sendable () -> Void = {}
        ) {
            (self.name, self.order, self.onTurn) = (name, order, onTurn)
            ticket = JobTicket(isUrgent: isUrgent, client: client)
            left = Mutex(turns)
        }

        func turn() -> TurnEnd {
            order.append(name)
            onTurn()
            return left.withLock { left in
                left -= 1
                return left > 0 ? .again : .idle
            }
        }
    }

    private final class Moment: Sendable {
        private let noted = Mutex<ContinuousClock.Instant?>(nil)

        var instant: ContinuousClock.Instant? { noted.withLock(\.self) }

        func note() { noted.withLock { $0 = .now } }
    }

    private let total = WorkBucket(stepsPerSecond: 1_000_000_000)

    @Test func nonUrgentJobsHardlyDelayUrgentJobs() async throws {
        let pool = WorkerPool(name: "test", threads: 1)
        let order = Order()
        let client = WorkRate(within: total)
        for _ in 0..<50 { pool.schedule(Named("slow", order, turns: 20, client)) }
        for _ in 0..<10 { pool.schedule(Named("prompt", order, turns: 3, isUrgent: true)) }
        pool.start()
        try await untilTrue("all is done") { pool.isIdle }
        // Every fourth turn belongs to the other jobs.
        #expect(order.all.prefix(40).count { $0 == "prompt" } == 30)
        await pool.stop()
    }

    /// Another client gets every second turn of the second queue, however many jobs the first client has.
    @Test func clientsTakeTurns() async throws {
        let pool = WorkerPool(name: "test", threads: 1)
        let order = Order()
        let (greedy, modest) = (WorkRate(within: total), WorkRate(within: total))
        let prompt = Named("prompt", order, turns: 1_000, isUrgent: true)
        for _ in 0..<1_000 { pool.schedule(Named("greedy", order, turns: 2, greedy)) }
        pool.schedule(Named("modest", order, turns: 5, modest))
        pool.schedule(prompt)
        pool.start()
        try await untilTrue("all is done") { pool.isIdle }
        let turns = order.all.enumerated().filter { $0.element == "modest" }.map(\.offset)
        #expect(turns.count == 5)
        #expect((turns.last ?? .max) <= 10 * WorkerPool.turnOfSecondQueue, "\(turns)")
        await pool.stop()
    }

    /// An overdrawn client gets no turns until it has paid, even if there is nothing else to do.
    @Test(arguments: [false, true]) func overdrawnClientWaits(isUrgent: Bool) async throws {
        let pool = WorkerPool(name: "test", threads: 2)
        let order = Order()
        let slow = WorkBucket(stepsPerSecond: 1_000)
        let (debtor, other) = (WorkRate(within: slow), WorkRate(within: total))
        debtor.spend(100)
        let start = ContinuousClock.now
        let paid = Moment()
        pool.schedule(Named("debtor", order, turns: 1, isUrgent: isUrgent, debtor) { paid.note() })
        for _ in 0..<10 { pool.schedule(Named("other", order, turns: 1, other)) }
        pool.start()
        try await untilTrue("all is done") { pool.isIdle }
        #expect(order.all == Array(repeating: "other", count: 10) + ["debtor"])
        // 100 steps at 500 a second, without the 50 ms of the burst.
        let end = try #require(paid.instant)
        #expect(end - start > .milliseconds(140))
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
