import Coaty
import Logging
import Testing
import TestSupport

@testable import Access
@testable import Base
@testable import Feeds
@testable import Network

/// Random schedules of a feed with pools of one and of four threads, compared with a model: events, offline periods,
/// subscriptions that join, resume, read slowly and leave, changes of visibility, filters that are expensive for some
/// events, and clients that are overdrawn at times.
@Suite(.exclusive) struct FeedScheduleTests {
    /// A client, the frames that it has received, and its visibility over time.
    private final class Client {
        let transport = SteeredTransport()
        let outbound: OutboundQueue
        let subscription: ClientSubscription
        let isFiltered: Bool
        /// The position after which it subscribed; nil if it is that of `ok`.
        let since: FeedCursor?
        /// The views of the client, each with the number of frames received before it applied.
        var views: [(first: Int, isRestricted: Bool)]
        /// The number of frames received when the client left; nil while it is connected.
        var left: Int?

        init(
            _ workers: WorkerPool,
            _ options: SubscriptionOptions,
            _ view: AccessView?,
            _ work: WorkRate? = nil
        ) {
            outbound = OutboundQueue(
                transport,
                account: .single(),
                workers: workers,
                hasOneSubscription: false
            )
            subscription = outbound.open(id: "s", options: options, wanted: nil, view: view)
            if let work { subscription.charge(work) }
            isFiltered = options.filter != nil
            if case .plain(let cursor)? = options.since { since = cursor } else { since = nil }
            views = [(0, view != nil)]
        }
    }

    /// Restricted clients see every third event; filters select every second one.
    private static func isVisible(_ number: Int) -> Bool { number % 3 == 0 }
    private static func isWanted(_ number: Int) -> Bool { number % 2 == 0 }

    private let view: AccessView
    private let filters: [ClientCondition]

    init() throws {
        view = AccessView(
            permissions: try Policy.permissions(
                #"[{"observe":["channel"],"channels":["*"],"where":["object.v",["Equals",true]]}]"#
            )
        )
        // Equivalent conditions form several groups. The last one is expensive for events with a long list.
        filters = try [
            #"["w",["Equals",true]]"#, #"["w",["NotEquals",false]]"#,
            #"{"and":[["w",["NotEquals",false]],["list",["NotContains",-1]]]}"#,
        ].map(Made.condition)
    }

    @Test(arguments: [1, 4], 0..<20 as Range<UInt64>)
    func eachSubscriptionIsCompleteAndInOrder(_ threads: Int, seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let workers = WorkerPool(name: "test", threads: threads)
        workers.start()
        let buffer = ReplayBuffer(limit: try Made.recordSize() * Int.random(in: 10...400, using: &random))
        let feed = Feed(
            isResumable: true,
            memory: buffer,
            workers: workers,
            counts: FeedCounts(logger: Logger(label: "test"))
        )
        // Two accounts; the work of other clients is not charged.
        let rate = [1_000_000, 10_000_000, 1_000_000_000].randomElement(using: &random) ?? 0
        let total = WorkBucket(stepsPerSecond: rate)
        let payers = [WorkRate(within: total), WorkRate(within: total), nil]
        if Bool.random(using: &random) { feed.update(.standing) }
        var clients: [Client] = []
        var gaps: Set<Int> = []
        var last = 0

        func deliver() throws {
            last += 1
            let length = Int.random(in: 0..<100, using: &random) == 0 ? 2 * Audience.expensiveSteps : 1
            let list = Array(repeating: "1", count: length).joined(separator: ",")
            let members =
                #""objectType":"t","objectId":"o\#(last % 5)","name":"o","n":\#(last),"w":\#(Self.isWanted(last)),"v":\#(Self.isVisible(last))"#
                + #","list":[\#(list)]"#
            feed.deliver(try Made.channel(#"{"object":{"coreType":"CoatyObject",\#(members)}}"#))
        }
        func join(since: FeedCursor?) {
            let options = Made.options {
                $0.since = since.map(ClientCursor.plain)
                $0.filter = Bool.random(using: &random) ? filters.randomElement(using: &random) : nil
                $0.buffer = Int.random(in: 1...2, using: &random) == 1 ? 4096 : Int.random(in: 1...10, using: &random)
            }
            let payer = payers[Int.random(in: 0..<3, using: &random)]
            let client = Client(workers, options, Bool.random(using: &random) ? view : nil, payer)
            client.transport.setRoom(Bool.random(using: &random) ? .max : Int.random(in: 0...5, using: &random))
            feed.add(client.subscription)
            clients.append(client)
        }
        func stay() -> [Client] { clients.filter { $0.left == nil } }

        for step in 0..<400 {
            switch Int.random(in: 0..<40, using: &random) {
            case 0..<20: for _ in 0..<Int.random(in: 1...6, using: &random) { try deliver() }
            case 20, 21: join(since: nil)
            case 22, 23:
                let cursors = try clients.randomElement(using: &random)?.transport.delivered.compactMap(\.cursor)
                join(since: cursors?.randomElement(using: &random))
            case 24, 25:
                guard let client = stay().randomElement(using: &random) else { break }
                client.outbound.close(client.subscription)
                client.left = client.transport.frames.count
                feed.remove(client.subscription)
            case 26:
                last += 1
                gaps.insert(last)
                feed.update(.offline)
                feed.update(.standing)
            case 27, 28:
                guard let client = stay().randomElement(using: &random) else { break }
                let isRestricted = !(client.views.last?.isRestricted ?? false)
                // Frames that are delivered during the change are checked against the wider view.
                let before = client.transport.frames.count
                client.outbound.change(isRestricted ? view : nil, of: client.subscription)
                client.views.append((isRestricted ? client.transport.frames.count : before, isRestricted))
            case 29..<35:
                guard let client = stay().randomElement(using: &random) else { break }
                client.transport.setRoom(Int.random(in: 0...20, using: &random))
                client.outbound.pump()
            default: await Task.yield()
            }
            if step == 200 { feed.update(.standing) }
        }
        // The last event is visible to all clients and passes all filters.
        repeat { try deliver() } while last % 6 != 0
        for client in stay() {
            client.transport.setRoom(.max)
            client.outbound.pump()
        }
        try await untilTrue("the last event has arrived") {
            try stay().allSatisfy { try $0.transport.delivered.last?.event == last }
        }
        try await untilTrue("all turns are over") { workers.isIdle }
        for client in clients { try check(client, gaps, last) }
        for client in clients { client.outbound.close() }
        feed.close()
        await workers.stop()
    }

    private func check(_ client: Client, _ gaps: Set<Int>, _ last: Int) throws {
        let frames = try client.transport.delivered
        if let left = client.left { #expect(frames.count == left, "nothing follows the end") }
        guard let ok = frames.first else {
            #expect(client.left != nil)
            return
        }
        #expect(ok.content == .ok)
        // If the first frame does not show the start position, only the order is checked up to the first event.
        var position = (client.since ?? ok.cursor).map { Int($0.position) }
        var isGap = false
        for (index, frame) in frames.enumerated().dropFirst() {
            switch frame.content {
            case .event(let number):
                let views = client.views.filter { $0.first <= index }
                if views.last?.isRestricted ?? false { #expect(Self.isVisible(number), "\(number) is not visible") }
                if client.isFiltered { #expect(Self.isWanted(number)) }
                if let position {
                    #expect(number > position, "\(number) follows \(position)")
                    let missed = (position + 1..<max(number, position + 1)).filter { isDue($0, to: client, gaps) }
                    #expect(isGap || missed.isEmpty, "\(missed) are missing before \(number)")
                }
                #expect(frame.cursor.map { Int($0.position) } == number)
                (position, isGap) = (number, false)
            case .gap: isGap = true
            default: Issue.record("\(frame)")
            }
        }
        if client.left == nil { #expect(position == last && !isGap) }
    }

    /// Returns whether a client must receive an event or a gap for it, whichever of its views applied.
    private func isDue(_ number: Int, to client: Client, _ gaps: Set<Int>) -> Bool {
        if gaps.contains(number) { return true }
        if client.isFiltered, !Self.isWanted(number) { return false }
        return Self.isVisible(number) || !client.views.contains { $0.isRestricted }
    }

    // MARK: - Backlog

    /// While no worker is free, the backlog of a feed is bounded: the oldest events are replaced by a gap.
    @Test func backlogIsBoundedAndReportedAsGap() async throws {
        let workers = WorkerPool(name: "test", threads: 1)
        let maximum = 1000
        let counts = FeedCounts(
            memory: Limits().feedMemory,
            maximumEvents: maximum,
            logger: Logger(label: "test")
        )
        let feed = Feed(isResumable: true, memory: ReplayBuffer(limit: 64 << 20), workers: workers, counts: counts)
        feed.update(.standing)
        let count = 3 * maximum
        let options = Made.options { $0.buffer = 4096 }
        let (early, late) = (Client(workers, options, nil), Client(workers, options, nil))
        feed.add(early.subscription)
        for number in 1...count { feed.deliver(try Made.event(1, number)) }
        feed.add(late.subscription)
        feed.deliver(try Made.event(1, count + 1))
        #expect(counts.droppedBacklogs > 0)
        workers.start()
        try await untilTrue("the last event has arrived") {
            try [early, late].allSatisfy { try $0.transport.delivered.last?.event == count + 1 }
        }
        let frames = try early.transport.delivered
        #expect(frames.prefix(2).map(\.content) == [.ok, .gap(nil)])
        let first = try #require(frames.compactMap(\.event).first)
        #expect(first > count - maximum)
        #expect(frames.compactMap(\.event) == Array(first...count + 1))
        #expect(frames[1].cursor?.position == UInt64(first - 1))
        #expect(try late.transport.delivered.map(\.content) == [.ok, .event(count + 1)])
        // The replay buffer has the dropped events.
        let resuming = Client(workers, Made.options { $0.since = frames[0].cursor.map(ClientCursor.plain) }, nil)
        feed.add(resuming.subscription)
        try await untilTrue("everything is replayed") {
            try resuming.transport.delivered.compactMap(\.event) == Array(1...count + 1)
        }
        for client in [early, late, resuming] { client.outbound.close() }
        await workers.stop()
    }

    /// Feeds share the memory for their backlogs, and a single feed can't use all of it.
    @Test func memoryOfBacklogsIsBounded() async throws {
        let workers = WorkerPool(name: "test", threads: 1)
        let counts = FeedCounts(memory: 1 << 20, logger: Logger(label: "test"))
        let feeds = (0..<3).map { _ in
            Feed(isResumable: true, memory: ReplayBuffer(limit: 1 << 10), workers: workers, counts: counts)
        }
        let client = Client(workers, Made.options { $0.buffer = 4096 }, nil)
        feeds[0].update(.standing)
        feeds[0].add(client.subscription)
        for number in 1...300 { feeds[0].deliver(try Made.event(1, number, padding: 4000)) }
        #expect((1 << 17...1 << 19).contains(counts.usedMemory) && counts.droppedBacklogs > 0)
        for number in 1...300 { feeds[1].deliver(try Made.event(1, number, padding: 4000)) }
        // The third feed gets its guaranteed part from the reserve.
        let dropped = counts.droppedBacklogs
        for number in 1...3 { feeds[2].deliver(try Made.event(1, number, padding: 4000)) }
        #expect(counts.droppedBacklogs == dropped && counts.usedMemory <= 1 << 20)
        workers.start()
        try await untilTrue("the last event has arrived") { try client.transport.delivered.last?.event == 300 }
        #expect(try client.transport.delivered.prefix(2).map(\.content) == [.ok, .gap(nil)])
        try await untilTrue("nothing waits") { counts.usedMemory == 0 }
        // A single event may exceed the share of a feed.
        feeds[0].deliver(try Made.event(1, 301, padding: 1 << 20))
        try await untilTrue("the large event has arrived") { try client.transport.delivered.last?.event == 301 }
        client.outbound.close()
        await workers.stop()
    }

    // MARK: - Expensive filters

    /// An event for which a filter needs too many steps is left out, and several such events in a row end the
    /// subscription. Other subscriptions of the feed get every event.
    @Test func filterOverItsBudgetIsReportedAndEnds() async throws {
        let workers = WorkerPool(name: "test", threads: 2)
        workers.start()
        let feed = Feed(
            isResumable: true,
            memory: ReplayBuffer(limit: 64 << 20),
            workers: workers,
            counts: FeedCounts(logger: Logger(label: "test"))
        )
        feed.update(.standing)
        let expensive = try Made.condition(#"["list",["Contains",-1]]"#)
        func client(_ filter: ClientCondition?, _ view: AccessView? = nil) -> Client {
            let client = Client(workers, Made.options { ($0.filter, $0.buffer) = (filter, 4096) }, view)
            feed.add(client.subscription)
            return client
        }
        func deliver(_ number: Int, values: Int, isVisible: Bool = true) throws {
            let list = Array(repeating: "1", count: values).joined(separator: ",")
            let known = #""objectType":"t","objectId":"o","name":"o","n":\#(number)"#
            let members = known + #","v":\#(isVisible),"list":[\#(list)]"#
            feed.deliver(try Made.channel(#"{"object":{"coreType":"CoatyObject",\#(members)}}"#))
        }
        let (slow, other, restricted) = (client(expensive), client(nil), client(expensive, view))
        let tooMany = Limits().filterSteps + 10
        try deliver(1, values: tooMany)
        try deliver(2, values: 5)
        let last = 2 + Audience.maximumLeftOut
        // The restricted client must not see these events, nor that they exist.
        for number in 3...last {
            try deliver(number, values: tooMany, isVisible: false)
            // The events of a slow client have little room: on a busy machine, some would be dropped and not count.
            try await untilTrue("it is read") { workers.isIdle }
        }
        try await untilTrue("the other gets all") { try other.transport.delivered.last?.event == last }
        try await untilTrue("the subscription ends") { try slow.transport.delivered.last?.content == .error }
        try await untilTrue("all turns are over") { workers.isIdle }
        #expect(try other.transport.delivered.compactMap(\.event) == Array(1...last))
        // Only the first event of each series is reported; a client that resumes from there gets the following ones
        // again.
        let frames = try slow.transport.delivered
        #expect(frames.map(\.content) == [.ok, .gap(nil), .gap(nil), .error])
        #expect(frames[1].cursor?.position == 1 && frames[2].cursor?.position == 3)
        #expect(slow.transport.frames[1].contains(#""reason":"filter-steps""#))
        #expect(slow.outbound.statistics.leftOut == 2)
        #expect(slow.transport.frames[3].contains("filter-too-expensive"))
        #expect(try restricted.transport.delivered.map(\.content) == [.ok, .gap(nil)])
        for client in [slow, other, restricted] { client.outbound.close() }
        feed.close()
        await workers.stop()
    }
}
