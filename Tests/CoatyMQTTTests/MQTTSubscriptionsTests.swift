import TestSupport
import Testing

@testable import Coaty
@testable import CoatyMQTT

/// A simulated broker that closes the connection upon some packets.
private final class FaultyBroker {
    var subscriptions: MQTTSubscriptions
    /// Filters upon which it closes the connection.
    var bad: Set<String>
    var maximumFilters = Int.max
    var now = ContinuousClock.now
    private(set) var granted: Set<String> = []
    private(set) var packets: [[String]] = []
    private(set) var refused: [String] = []
    private(set) var answers: [UInt64: Bool] = [:]
    private var lastId: Int32 = 0
    private(set) var connects = 0

    init(bad: Set<String> = [], maximumFilters: Int = .max, filtersPerPacket: Int = 8) {
        let topics = MQTTTopics(namespace: "-", observesAllNamespaces: false, dialect: .plain)
        subscriptions = MQTTSubscriptions(topics: topics, filtersPerPacket: filtersPerPacket)
        self.bad = bad
        self.maximumFilters = maximumFilters
    }

    /// Connects, and answers packets in order until it closes the connection or there is nothing left to answer.
    ///
    /// - Returns: whether the connection is still open.
    func connect(_ requests: [SubscriptionRequest], isWriting: Bool = false) -> Bool {
        connects += 1
        (granted, packets, answers) = ([], [], [:])
        subscriptions.connected()
        // The network thread requests packets before it has taken the requests.
        _ = subscriptions.nextPacket(now: now)
        note(subscriptions.add(requests))
        return serve(isWriting: isWriting)
    }

    func serve(isWriting: Bool = false) -> Bool {
        var unanswered: [(Int32, [String])] = []
        while true {
            while let packet = subscriptions.nextPacket(now: now) {
                lastId += 1
                _ = subscriptions.sent(lastId, keys: packet.keys, now: now)
                packets.append(packet.filters)
                unanswered.append((lastId, packet.filters))
            }
            guard !unanswered.isEmpty else { return true }
            let (id, filters) = unanswered.removeFirst()
            guard bad.isDisjoint(with: filters), filters.count <= maximumFilters else {
                lose(isWriting: isWriting)
                return false
            }
            granted.formUnion(filters)
            note(subscriptions.acknowledged(id, isGranted: filters.map { _ in true }, now: now))
        }
    }

    func lose(isWriting: Bool = false) {
        refused += subscriptions.lost(isWriting: isWriting, isLeaving: false, now: now)
    }

    func note(_ new: [MQTTSubscriptions.Answer]) {
        for answer in new { answers[answer.request.ticket] = answer.isGranted }
    }
}

extension MQTTSubscriptions.Command {
    fileprivate var filters: [String] {
        switch self {
        case .subscribe(let filters), .unsubscribe(let filters): filters
        }
    }
}

@Suite(.exclusive) struct MQTTSubscriptionsTests {
    /// Subscriptions to responses end together, in packets, and once.
    @Test func endsOfResponseSubscriptionsAreCollected() {
        let broker = FaultyBroker(filtersPerPacket: 4)
        let selectors = (0..<7).map { _ in EventSelector.responses(.resolve, correlationId: CoatyUUID()) }
        let requests = zip(selectors, 1...).map { SubscriptionRequest(selector: $0, ticket: $1, isEssential: false) }
        #expect(broker.connect(requests))
        let first = selectors[..<5].map { broker.subscriptions.remove($0).commands }
        #expect(first.map(\.count) == [0, 0, 0, 1, 0])
        #expect(broker.subscriptions.takeEnded().map(\.filters.count) == [1])
        #expect(broker.subscriptions.takeEnded().isEmpty)
        _ = broker.subscriptions.remove(selectors[5])
        #expect(broker.subscriptions.removeAll().map(\.filters.count) == [2])
        #expect(broker.subscriptions.takeEnded().isEmpty)
    }

    private func requests(_ filters: [String], essential: Set<String> = []) -> [SubscriptionRequest] {
        filters.enumerated().map { index, filter in
            SubscriptionRequest(
                selector: .raw(WireName(filter)),
                ticket: UInt64(index + 1),
                isEssential: essential.contains(filter)
            )
        }
    }

    @Test func subscribesInPacketsOfEightFilters() {
        let broker = FaultyBroker()
        let filters = (0..<20).map { "\($0)" }
        #expect(broker.connect(requests(filters)))
        #expect(broker.packets == [Array(filters[..<8]), Array(filters[8..<16]), Array(filters[16...])])
        #expect(broker.answers.count == 20 && broker.answers.values.allSatisfy(\.self))
    }

    @Test(arguments: [["bad"], ["bad", "worse"], ["bad", "worse", "worst"]])
    func onlyFiltersThatCloseTheConnectionAreRefused(bad: [String]) {
        let filters = (0..<100).map { "\($0)" } + bad + (100..<200).map { "\($0)" }
        let broker = FaultyBroker(bad: Set(bad))
        while !broker.connect(requests(filters)), broker.connects < 100 {}
        #expect(Set(broker.refused) == Set(bad))
        #expect(broker.granted == Set(filters).subtracting(bad))
        #expect(broker.answers.count { !$0.value } == bad.count && broker.answers.count == filters.count)
        #expect(broker.connects <= 6 + 6 * bad.count)
        // The next connection omits these filters from the start, and immediately subscribes to all others.
        broker.lose()
        #expect(broker.connect(requests(filters)))
        #expect(broker.packets.count == 25 && broker.answers.count { !$0.value } == bad.count)
    }

    @Test func newFilterThatClosesAnOpenConnectionIsFound() {
        let broker = FaultyBroker(bad: ["bad"])
        #expect(broker.connect(requests(["a", "b"])))
        broker.note(broker.subscriptions.add([requests(["a", "b", "bad"])[2]]))
        #expect(!broker.serve())
        while !broker.connect(requests(["a", "b", "bad"])), broker.connects < 20 {}
        #expect(broker.connects == 4 && broker.refused == ["bad"])
    }

    /// Regression test: if a connection was lost by chance while filters were tried one by one, the next filter was
    /// refused.
    @Test(arguments: 1...3) func randomConnectionLossesRefuseNoFilterForLong(losses: Int) {
        let broker = FaultyBroker()
        let all = requests((0..<3).map { "\($0)" })
        for _ in 0..<losses {
            broker.subscriptions.connected()
            broker.note(broker.subscriptions.add(all))
            let packet = broker.subscriptions.nextPacket(now: broker.now)
            #expect(packet != nil)
            _ = broker.subscriptions.sent(1, keys: packet?.keys ?? [], now: broker.now)
            broker.lose()
        }
        #expect(broker.connect(all))
        // Three losses in a row at the same filter look as if the filter had caused them; the retry while connected
        // corrects this.
        if losses < 3 { #expect(broker.refused.isEmpty && broker.granted.count == 3) }
        broker.now += SuspectFilters.retryIntervals[0] + .seconds(1)
        broker.subscriptions.retry(now: broker.now)
        #expect(broker.serve())
        #expect(broker.granted.count == 3 && broker.answers.count == 3 && broker.answers.values.allSatisfy(\.self))
    }

    @Test func connectionLossDuringPublicationRefusesNoFilter() {
        let broker = FaultyBroker(bad: ["b"])
        for _ in 0..<10 { #expect(!broker.connect(requests(["a", "b"]), isWriting: true)) }
        #expect(broker.refused.isEmpty)
    }

    @Test func essentialSubscriptionsComeFirstAndAreNeverRefused() {
        let broker = FaultyBroker(bad: ["own"])
        let all = requests(["a", "own", "b"], essential: ["own"])
        for _ in 0..<20 { #expect(!broker.connect(all)) }
        #expect(broker.refused.isEmpty)
        broker.bad = []
        #expect(broker.connect(all))
        #expect(broker.packets.first?.first == "own" && broker.granted == ["a", "own", "b"])
    }

    @Test func refusedFilterIsRetriedThreeTimesWhileConnected() {
        let broker = FaultyBroker(bad: ["bad"])
        let all = requests(["a", "bad"])
        while !broker.connect(all), broker.connects < 20 {}
        for interval in SuspectFilters.retryIntervals {
            broker.subscriptions.retry(now: broker.now + interval - .seconds(1))
            #expect(broker.serve() && broker.packets.last != ["bad"])
            broker.now += interval + .seconds(1)
            broker.subscriptions.retry(now: broker.now)
            #expect(!broker.serve())
            #expect(broker.connect(all), "the filter is omitted from the start")
        }
        broker.now += .seconds(1_000_000)
        broker.subscriptions.retry(now: broker.now)
        #expect(broker.serve() && broker.granted == ["a"])
    }

    /// Each case has a number of subscriptions, the number of filters that the broker accepts in a packet, and the
    /// configured number of filters per packet.
    @Test(arguments: [(100, 1, 8), (200, 4, 8), (100, 7, 8), (1_500, 4, 8), (5_000, 8, 9), (5_000, 8, 64)])
    func packetsShrinkToTheLimitOfTheBroker(_ sizes: (count: Int, limit: Int, configured: Int)) {
        let filters = (0..<sizes.count).map { "\($0)" }
        let broker = FaultyBroker(maximumFilters: sizes.limit, filtersPerPacket: sizes.configured)
        while !broker.connect(requests(filters, essential: Set(filters.prefix(10)))), broker.connects < 30 {}
        #expect(broker.granted.count == sizes.count && broker.answers.values.allSatisfy(\.self))
        #expect(broker.refused.isEmpty && broker.subscriptions.filtersPerPacket <= sizes.limit)
        // The limit stays in force.
        broker.lose()
        #expect(broker.connect(requests(filters)))
    }

    @Test func probesAreSentWithoutOtherPackets() {
        let broker = FaultyBroker(bad: ["bad"])
        let all = requests(["a", "bad"])
        #expect(!broker.connect(all))
        broker.subscriptions.connected()
        broker.note(broker.subscriptions.add(all))
        let packet = broker.subscriptions.nextPacket(now: broker.now)
        #expect(packet?.filters.count == 1)
        _ = broker.subscriptions.sent(7, keys: packet?.keys ?? [], now: broker.now)
        let next = broker.subscriptions.nextPacket(now: broker.now)
        #expect(next == nil)
        #expect(broker.subscriptions.holdsBack(now: broker.now))
        // Publications are held back for a limited time only, because the broker may never answer.
        #expect(!broker.subscriptions.holdsBack(now: broker.now + MQTTSubscriptions.probeTime))
    }

    @Test func packetsWaitUntilTheBrokerHasAnsweredOthers() {
        var subscriptions = FaultyBroker(filtersPerPacket: 1).subscriptions
        let limit = MQTTSubscriptions.maximumUnanswered
        var (now, sent) = (ContinuousClock.now, Int32(0))
        func send() -> Int {
            var count = 0
            while let packet = subscriptions.nextPacket(now: now) {
                (sent, count) = (sent + 1, count + 1)
                _ = subscriptions.sent(sent, keys: packet.keys, now: now)
            }
            return count
        }
        subscriptions.connected()
        _ = subscriptions.add(requests((0..<2 * limit).map { "\($0)" }))
        now += .seconds(60)
        #expect(send() == limit && subscriptions.holdsBack(now: now))
        now += MQTTSubscriptions.stallTime - .milliseconds(1)
        _ = subscriptions.acknowledged(3, isGranted: [true], now: now)
        #expect(send() == 1)
        now += MQTTSubscriptions.stallTime - .milliseconds(1)
        #expect(send() == 0)
        // The broker may never answer; publications must not wait for that.
        now += .milliseconds(1)
        #expect(send() == limit - 1 && !subscriptions.holdsBack(now: now))
    }

    @Test func everyRequestIsAnsweredOnceEvenIfWithdrawn() {
        let broker = FaultyBroker()
        broker.subscriptions.connected()
        broker.note(broker.subscriptions.add(requests(["a", "b"])))
        let (commands, answers) = broker.subscriptions.remove(.raw(WireName("b")))
        #expect(commands.isEmpty, "the subscription was not sent")
        #expect(answers.map(\.isGranted) == [false] && answers.map(\.request.ticket) == [2])
        #expect(broker.serve() && broker.granted == ["a"])
        #expect(broker.subscriptions.remove(.raw(WireName("a"))).commands == [.unsubscribe(["a"])])
    }

    @Test func selectorsShareAFilterUntilTheLastIsGone() {
        let broker = FaultyBroker()
        let raw = SubscriptionRequest(selector: .raw(WireName("ext/foo")), ticket: 1, isEssential: false)
        let route = SubscriptionRequest(selector: .ioRoute(WireName("ext/foo")), ticket: 2, isEssential: false)
        #expect(broker.connect([raw, route]))
        #expect(broker.packets == [["ext/foo"]] && broker.answers == [1: true, 2: true])
        #expect(broker.subscriptions.remove(raw.selector).commands.isEmpty)
        #expect(broker.subscriptions.remove(route.selector).commands == [.unsubscribe(["ext/foo"])])
    }

    /// For random requests, ends, faults and losses, each request is answered once, and the active subscriptions are
    /// the granted ones.
    @Test(arguments: 0..<50 as Range<UInt64>) func grantedFiltersEqualSubscribedFilters(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let broker = FaultyBroker()
        var wanted: [String: SubscriptionRequest] = [:]
        var lastTicket: UInt64 = 0
        var isConnected = false
        for _ in 0..<400 {
            let filter = "\(Int.random(in: 0..<30, using: &generator))"
            switch Int.random(in: 0..<10, using: &generator) {
            case 0 where isConnected:
                broker.lose()
                isConnected = false
            case 0...2 where !isConnected:
                for filter in wanted.keys.sorted() {
                    lastTicket += 1
                    wanted[filter] = SubscriptionRequest(
                        selector: .raw(WireName(filter)),
                        ticket: lastTicket,
                        isEssential: false
                    )
                }
                isConnected = broker.connect(wanted.values.sorted { $0.ticket < $1.ticket })
            case 3...6 where isConnected && wanted[filter] == nil:
                lastTicket += 1
                let request = SubscriptionRequest(
                    selector: .raw(WireName(filter)),
                    ticket: lastTicket,
                    isEssential: false
                )
                wanted[filter] = request
                broker.note(broker.subscriptions.add([request]))
                isConnected = broker.serve()
            case 7...9 where isConnected:
                guard wanted.removeValue(forKey: filter) != nil else { continue }
                broker.note(broker.subscriptions.remove(.raw(WireName(filter))).answers)
            default: break
            }
            guard isConnected else { continue }
            for request in wanted.values { try #require(broker.answers[request.ticket] == true) }
        }
    }
}
