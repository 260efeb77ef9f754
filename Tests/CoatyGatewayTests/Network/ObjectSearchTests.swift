import Coaty
import ProblemDetails
import Synchronization
import Testing
import TestSupport

@testable import Base
@testable import Edge
@testable import Network

/// The results of queries for objects, and their cost.
@Suite(.exclusive) final class ObjectSearchTests: ObjectTableScene {
    private func find(
        _ items: KeyValuePairs<String, String>,
        steps: Int = Limits().querySteps
    ) throws -> (ids: [String], total: Int, steps: Int) {
        let selection = try ObjectSelection(
            QueryParameters(items: items.map { (name: $0.key, value: $0.value) }, limits: Limits())
        )
        var search = ObjectSearch(selection, in: table.content, nil)
        var budget = WorkBudget(steps: steps)
        while true {
            guard let found = try search.step(&budget) else { continue }
            return (found.objects.map(\.objectId.string), found.total, steps - budget.left)
        }
    }

    private func fill(_ count: Int) throws {
        for number in 0..<count {
            let parent = number % 3 == 0 ? #","parentObjectId":"p\#(number % 5)""# : ""
            let coreType = number % 4 == 0 ? CoreType.Task : .CoatyObject
            try receive(Self.json("\(number)", coreType, #","n":\#(number % 7)\#(parent)"#), from: "a")
        }
    }

    @Test func findsWhatTheFilterMatchesInOrder() throws {
        try fill(30)
        #expect(try find([:]).total == 30)
        #expect(try find(["limit": "3", "offset": "4"]).ids == ["4", "5", "6"])
        #expect(try find(["filter": #"["n",["Equals",3]]"#, "limit": "2", "offset": "1"]).ids == ["10", "17"])
        #expect(try find(["filter": #"["n",["Equals",3]]"#, "limit": "2", "offset": "1"]).total == 4)
        #expect(try find(["order": "-n,objectId", "limit": "5"]).ids == ["13", "20", "27", "6", "12"])
        #expect(try find(["order": "n", "limit": "2", "offset": "4"]).ids == ["28", "1"], "equal values keep order")
        #expect(try find(["order": "n", "offset": "40"]) == ([], 30, try find(["order": "n", "offset": "40"]).steps))
    }

    @Test func indexesNarrowTheSearch() throws {
        try fill(3_000)
        for (filter, expected) in [
            (#"["objectId",["Equals","17"]]"#, 1), (#"["objectId",["In",["17","18","none"]]]"#, 2),
            (#"["parentObjectId",["Equals","p1"]]"#, 200),
            (#"{"and":[["n",["Exists"]],{"and":[["objectId",["In",["17","18"]]]]}]}"#, 2),
            (#"["coreType",["Equals","User"]]"#, 0), (#"["objectType",["Equals","u"]]"#, 0),
        ] {
            let found = try find(["filter": filter])
            #expect(found.total == expected && found.steps < 5_000, "\(filter) \(found)")
        }
        #expect(try find(["filter": #"{"not":["objectId",["Equals","17"]]}"#]).total == 2_999)
        #expect(try find(["filter": #"{"or":[["objectId",["Equals","17"]],["n",["Equals",1]]]}"#]).total == 430)
        let task = try find(["coreType": "Task", "filter": #"["parentObjectId",["Equals","p1"]]"#])
        #expect(task.total == 50)
    }

    /// Only the requested page of a long result is kept.
    @Test(arguments: UInt64(1)...5) func orderedPagesEqualThoseOfASortedList(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var values: [Int] = []
        for number in 0..<5_000 {
            values.append(Int.random(in: 0..<500, using: &random))
            try receive(Self.json("\(number)", .CoatyObject, #","n":\#(values[number])"#), from: "a")
        }
        let sorted = values.indices.sorted { (values[$0], $0) < (values[$1], $1) }.map { "\($0)" }
        for (offset, limit) in [(0, 10), (37, 100), (4_990, 100), (2_000, 1_000)] {
            let found = try find(["order": "n", "offset": "\(offset)", "limit": "\(limit)"])
            #expect(found.ids == Array(sorted.dropFirst(offset).prefix(limit)) && found.total == 5_000)
        }
    }

    @Test func workIsBounded() throws {
        try fill(100)
        #expect(throws: WorkExceeded.self) { try find(["filter": #"["n",["Equals",3]]"#], steps: 200) }
        #expect(throws: WorkExceeded.self) { try find(["order": "n"], steps: 200) }
        let large = #","p":"\#(String(repeating: "p", count: 1_000_000))""#
        for number in 0..<5 { try receive(Self.json("large \(number)", .CoatyObject, large), from: "a") }
        let properties = Array(repeating: "p", count: 16).joined(separator: ",")
        #expect(throws: WorkExceeded.self, "the properties take too much memory") {
            try find(["order": properties, "limit": "1000"], steps: .max)
        }
        #expect(try find(["order": "p", "limit": "1"]).ids == ["0"])
    }
}

/// Execution of queries.
@Suite(.exclusive) struct QueriesTests {
    /// A query that never ends.
    private struct Endless: Query {
        let cost: Int

        mutating func step(_ budget: inout WorkBudget) throws -> Int? {
            try budget.spend(cost)
            return nil
        }
    }

    /// A rate that is never used up.
    private static let work = WorkRate(within: WorkBucket(stepsPerSecond: .max))

    private struct Immediate: Query {
        mutating func step(_ budget: inout WorkBudget) -> Int? { 7 }
    }

    private final class Counter: Sendable {
        private let count = Atomic(0)

        var value: Int { count.load(ordering: .acquiring) }

        func increment() -> Int { count.add(1, ordering: .acquiringAndReleasing).newValue }
    }

    private static func status(_ body: @Sendable () async throws -> Int) async -> Int {
        do {
            return try await body()
        } catch let problem as Problem {
            return problem.status
        } catch {
            return -1
        }
    }

    @Test func queriesEndAtTheirLimits() async {
        let queries = Queries(timeout: .milliseconds(50))
        queries.start()
        let tooExpensive = await Self.status {
            try await queries.perform(Endless(cost: 1_000_000), for: Self.work) { true }
        }
        #expect(tooExpensive == 422)
        #expect(await Self.status { try await queries.perform(Endless(cost: 0), for: Self.work) { true } } == 503)
        #expect(await Self.status { try await queries.perform(Immediate(), for: Self.work) { true } } == 7)
        await queries.stop()
        #expect(await Self.status { try await queries.perform(Immediate(), for: Self.work) { true } } == 503)
    }

    @Test func aQueryEndsWhenItsClientLeaves() async {
        let queries = Queries(timeout: .seconds(60))
        queries.start()
        let asked = Counter()
        let end = await Self.status {
            try await queries.perform(Endless(cost: 0), for: Self.work) { asked.increment() < 3 }
        }
        #expect(end == -1 && asked.value == 3)
        await queries.stop()
    }

    @Test func shortQueriesDoNotWaitForLongOnes() async {
        let queries = Queries(timeout: .seconds(30))
        queries.start()
        await withTaskGroup { group in
            let done = Counter()
            for _ in 0..<8 {
                group.addTask {
                    _ = try? await queries.perform(Endless(cost: 0), for: Self.work) { done.value == 0 }
                }
            }
            let start = ContinuousClock.now
            for _ in 0..<10 { _ = try? await queries.perform(Immediate(), for: Self.work) { true } }
            #expect(.now - start < .seconds(5))
            _ = done.increment()
        }
        await queries.stop()
    }

    /// Queries of a client that has used up its share wait; queries of another client do not.
    @Test func queriesOfOverdrawnClientsWait() async {
        let queries = Queries(timeout: .seconds(30))
        queries.start()
        let total = WorkBucket(stepsPerSecond: 64_000_000)
        let (greedy, modest) = (WorkRate(within: total), WorkRate(within: total))
        await withTaskGroup { group in
            let done = Counter()
            for _ in 0..<50 {
                group.addTask {
                    _ = try? await queries.perform(Endless(cost: 1_000), for: greedy) { done.value == 0 }
                }
            }
            while !greedy.isOverdrawn { await Task.yield() }
            let start = ContinuousClock.now
            for _ in 0..<10 { _ = try? await queries.perform(Immediate(), for: modest) { true } }
            #expect(.now - start < .seconds(5))
            #expect(!modest.isOverdrawn)
            _ = done.increment()
        }
        await queries.stop()
    }

    @Test func stoppingEndsRunningAndQueuedQueries() async {
        let queries = Queries(timeout: .seconds(60))
        queries.start()
        let asked = Counter()
        await withTaskGroup { group in
            for _ in 0..<3 {
                group.addTask {
                    let end = await Self.status {
                        try await queries.perform(Endless(cost: 0), for: Self.work) {
                            _ = asked.increment()
                            return true
                        }
                    }
                    #expect(end == 503)
                }
            }
            while asked.value < 10 { await Task.yield() }
            await queries.stop()
        }
    }
}
