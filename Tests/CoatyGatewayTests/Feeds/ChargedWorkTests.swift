import Coaty
import Logging
import TestSupport
import Testing

@testable import Base
@testable import Edge
@testable import Feeds

/// Charges to clients for the work of their feeds.
@Suite(.exclusive, .closesOutboundQueues) struct ChargedWorkTests {
    private let counts = FeedCounts(memory: Limits().feedMemory, logger: Logger(label: "test"))
    private let feed: Feed
    /// Each of two clients gets 1,000 steps a second.
    private let total = WorkBucket(stepsPerSecond: 2_000)

    init() {
        feed = Feed(
            isResumable: true,
            memory: ReplayBuffer(limit: 1 << 20),
            workers: ClosesOutboundQueues.made.workers,
            counts: counts
        )
        feed.update(.standing)
    }

    private func client(
        _ work: WorkRate,
        since: FeedCursor? = nil,
        filter: String? = nil,
        fields: String? = nil
    ) throws -> SteeredTransport {
        let transport = SteeredTransport()
        let condition = try filter.map(Made.condition)
        let tree = try fields.flatMap {
            try SubscriptionOptions(
                QueryParameters(items: [("fields", $0)], limits: Limits()),
                of: .channel(.init("c"))
            ).fields
        }
        let subscription = OutboundQueue(transport).open(
            id: "s",
            options: Made.options {
                ($0.since, $0.filter, $0.fields) = (since.map(ClientCursor.plain), condition, tree)
            }
        )
        subscription.charge(work)
        feed.add(subscription)
        return transport
    }

    @Test func deliveriesAreCharged() async throws {
        let (all, none) = (WorkRate(within: total), WorkRate(within: total))
        let receiving = try client(all)
        let other = try client(none, filter: #"["n",["Equals",0]]"#)
        try await settled()
        for number in 1...20 { feed.deliver(try Made.event(1, number)) }
        try await untilTrue("all are delivered") { try receiving.delivered.compactMap(\.event) == Array(1...20) }
        try await settled()
        #expect(try other.delivered.compactMap(\.event) == [])
        #expect(all.spent >= 20 * WorkRate.steps(toPass: 0) && none.spent == 0)
    }

    /// Many cheap filters of one client cost as much as a few expensive ones. The client's events are delayed until it
    /// has paid; events of other clients are not.
    @Test func cheapFiltersAreCharged() async throws {
        let work = WorkBucket(stepsPerSecond: 100_000)
        let (greedy, modest) = (WorkRate(within: work), WorkRate(within: work))
        let filtered = try (1...500).map { try client(greedy, filter: #"["none\#($0)",["NotExists"]]"#) }
        let other = try client(modest)
        try await settled()
        var last = 0
        func deliver(_ count: Int) throws {
            for _ in 0..<count {
                last += 1
                feed.deliver(try Made.event(1, last))
            }
        }
        try deliver(20)
        try await untilTrue("the client is overdrawn") { greedy.isOverdrawn }
        try deliver(1)
        try await untilTrue("the other has it") { try other.delivered.last?.event == last }
        #expect(try filtered.contains { try $0.delivered.last?.event != last })
        try await untilTrue("the client has paid and got all") {
            try filtered.allSatisfy { try $0.delivered.compactMap(\.event) == Array(1...last) }
        }
    }

    /// A filter that many clients share is evaluated once for all of them, so it delays none.
    @Test func sharedFiltersDelayNoClient() async throws {
        let rate = WorkBucket(stepsPerSecond: 1_000_000_000)
        let clients = try (0..<400).map { _ in try client(WorkRate(within: rate), filter: #"["n",["GreaterThan",0]]"#) }
        try await settled()
        for number in 1...500 {
            feed.deliver(try Made.event(1, number))
            if number.isMultiple(of: 10) { try await settled() }
            try #require(counts.currentSlowLanes == 0)
        }
        for client in clients { #expect(try client.delivered.last?.event == 500) }
    }

    /// All receivers share the bytes of a large event, unless each needs another part of it.
    @Test func largeEventsDelayNoClient() async throws {
        let work = WorkRate(within: WorkBucket(stepsPerSecond: 1_000_000_000))
        let all = try (0..<4).map { _ in try client(work) }
        try await settled()
        let large = String(repeating: "x", count: 3 << 19)
        func deliver(_ number: Int) throws {
            let known = #""coreType":"CoatyObject","objectType":"t","objectId":"o","name":"o""#
            feed.deliver(try Made.channel(#"{"object":{\#(known),"n":\#(number),"large":"\#(large)"}}"#))
        }
        try deliver(1)
        try await untilTrue("all have it") { try all.allSatisfy { try $0.delivered.last?.event == 1 } }
        try await settled()
        #expect(counts.currentSlowLanes == 0)
        let others = try (0..<4).map { _ in
            try client(WorkRate(within: WorkBucket(stepsPerSecond: 1_000_000_000)), fields: "n,name")
        }
        try await settled()
        try deliver(2)
        try await untilTrue("they have their part") { try others.allSatisfy { try $0.delivered.last?.event == 2 } }
        try await settled()
        #expect(counts.currentSlowLanes == 0)
        let more = try (0..<3).map { try client(work, fields: "n,name,other\($0)") }
        try await settled()
        try deliver(3)
        try await untilTrue("each has its part") { try more.allSatisfy { try $0.delivered.last?.event == 3 } }
        try await settled()
        #expect(counts.currentSlowLanes == 1)
    }

    /// A client that gets a large event many times is delayed.
    @Test func manyLargeDeliveriesDelayTheClient() async throws {
        let work = WorkRate(within: WorkBucket(stepsPerSecond: 1_000_000_000))
        let many = try (0..<40).map { _ in try client(work) }
        try await settled()
        for number in 1...2 { feed.deliver(try Made.event(1, number, padding: number == 1 ? 10 : 100_000)) }
        try await untilTrue("all have it") { try many.allSatisfy { try $0.delivered.last?.event == 2 } }
        try await untilTrue("they are to wait") { counts.currentSlowLanes == 1 }
    }

    /// A client leaves its slow lane when its events have been cheap for some time. Then its events are not delayed
    /// even while it is overdrawn.
    @Test func clientsLeaveTheSlowLane() async throws {
        let work = WorkRate(within: WorkBucket(stepsPerSecond: 1_000_000_000))
        let receiving = try client(work, filter: #"["list",["NotContains",-1]]"#)
        try await settled()
        var last = 0
        func deliver(values: Int) throws {
            last += 1
            let list = Array(repeating: "1", count: values).joined(separator: ",")
            let known = #""coreType":"CoatyObject","objectType":"t","objectId":"o","name":"o""#
            feed.deliver(try Made.channel(#"{"object":{\#(known),"n":\#(last),"list":[\#(list)]}}"#))
        }
        try deliver(values: 2 * Audience.expensiveSteps)
        try await untilTrue("it is there") { counts.currentSlowLanes == 1 }
        // Deliver in bursts, so that pauses between events do not determine whether the feed finds the lane idle.
        for _ in 0..<SlowLane.recovery { try deliver(values: 1) }
        try await untilTrue("it has left") { counts.currentSlowLanes == 0 }
        work.spend(10_000_000_000)
        try deliver(values: 1)
        try await untilTrue("it has come") {
            // In the slow lane, the event would wait until this is paid.
            work.spend(10_000_000_000)
            return try receiving.delivered.compactMap(\.event) == Array(1...last)
        }
    }

    /// A client that resumes too often is delayed, another client is not.
    @Test func replaysAreChargedAndWait() async throws {
        let greedy = WorkRate(within: total)
        let modest = WorkRate(within: WorkBucket(stepsPerSecond: 1_000_000_000))
        let first = try client(modest)
        try await settled()
        for number in 1...20 { feed.deliver(try Made.event(1, number)) }
        try await settled()
        let since = try #require(try first.delivered.first?.cursor)
        let replayed = try client(greedy, since: since)
        try await untilTrue("the replay has ended") { try replayed.delivered.compactMap(\.event).count == 20 }
        #expect(greedy.isOverdrawn)
        let waiting = try client(greedy, since: since)
        let prompt = try client(modest, since: since)
        try await untilTrue("the other has all") { try prompt.delivered.compactMap(\.event).count == 20 }
        #expect(try waiting.delivered.compactMap(\.event) == [])
        try await untilTrue("the client has paid") { try waiting.delivered.compactMap(\.event).count == 20 }
    }
}
