import TestSupport
import Testing

@testable import Coaty

@Suite(.exclusive) struct OutboxTests {
    private enum Taken: Equatable {
        case subscribe([UInt64])
        case unsubscribe(String)
        case publish(String)
        case disconnect

        init(_ operation: SessionOperation) {
            switch operation {
            case .subscribe(let requests): self = .subscribe(requests.map(\.ticket))
            case .unsubscribe(let selector): self = .unsubscribe("\(selector)")
            case .publish(let publication): self = .publish(publication.topic)
            case .disconnect: self = .disconnect
            }
        }
    }

    private func request(_ filter: String, _ ticket: UInt64) -> SubscriptionRequest {
        SubscriptionRequest(selector: .raw(WireName(filter)), ticket: ticket, isEssential: false)
    }

    private func publication(_ topic: String, request: UInt64? = nil) -> Publication {
        Publication(.raw(topic: topic, isRetained: false), payload: [], request: request)
    }

    @Test func oldestUnwrittenPublicationIsReported() throws {
        var outbox = Outbox(limits: OutboxLimits(publications: 10, bytes: 1 << 20))
        #expect(outbox.oldestQueued == nil)
        outbox.begin(
            subscriptions: [request("own", 0)],
            joinEvents: [Publication(.raw(topic: "join", isRetained: false), payload: [], isJoinEvent: true)]
        )
        #expect(outbox.oldestQueued == nil, "join events are made again for each connection")
        let begin = ContinuousClock.now
        _ = try outbox.publish([publication("a", request: 1), publication("b")])
        let between = ContinuousClock.now
        _ = try outbox.publish([publication("c")])
        let first = try #require(outbox.oldestQueued)
        #expect(first >= begin && first <= between)
        while outbox.next() != nil {}
        #expect(outbox.oldestQueued == first, "it was taken but not written")
        // The join event, a and b.
        for _ in 0..<3 { _ = outbox.publicationDone() }
        let last = try #require(outbox.oldestQueued)
        #expect(last > between)
        // The connection is lost: the publication has been queued since then.
        _ = outbox.end()
        #expect(outbox.oldestQueued == last)
        _ = try outbox.publish([publication("d", request: 2)])
        while outbox.next() != nil {}
        _ = outbox.publicationDone()
        #expect(try #require(outbox.oldestQueued) > last)
        _ = outbox.publicationDone()
        #expect(outbox.oldestQueued == nil)
        _ = try outbox.publish([publication("e", request: 3)])
        outbox.withdraw(request: 3)
        #expect(outbox.oldestQueued == nil, "withdrawn")
    }

    @Test func publicationsOfAClientMoveBehindOthersWithThoseThatMustFollowThem() throws {
        var outbox = Outbox(limits: OutboxLimits(publications: 10, bytes: 1 << 20))
        let (one, other, third, object) = (TestClient(), TestClient(), TestClient(), CoatyUUID())
        func publication(_ topic: String, of client: TestClient?, _ sharing: Sharing? = nil) -> Publication {
            var publication = Publication(.raw(topic: topic, isRetained: false), payload: [], sharing: sharing)
            publication.client = client
            return publication
        }
        _ = try outbox.publish([
            publication("one", of: one, .advertises(object, parentId: nil, isObjectType: false)),
            publication("other", of: other), publication("end", of: nil, .ends([object])),
            publication("agent", of: nil), publication("third", of: third), publication("one, too", of: one),
        ])
        outbox.moveToEnd(publicationsOf: one)
        var topics: [String] = []
        while let operation = outbox.next() {
            if case .publish(let publication) = operation { topics.append(publication.topic) }
        }
        #expect(topics == ["other", "third", "one", "end", "agent", "one, too"])
    }

    /// Compares the outbox with a queue that removes canceled and withdrawn operations by searching for them.
    @Test(arguments: 0..<40 as Range<UInt64>) func cancelledOperationsAreNotSent(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var outbox = Outbox(limits: OutboxLimits(publications: 10_000, bytes: 1 << 20))
        outbox.begin(subscriptions: [request("own", 0)], joinEvents: [])
        var expected: [(taken: Taken, request: UInt64?)] = [(.subscribe([0]), nil)]
        var subscribed: Set<String> = []
        /// The last ticket of each filter.
        var tickets: [String: UInt64] = [:]
        var requests: Set<UInt64> = []
        var writing = 0
        // At first, many operations are queued and canceled; at the end, many are taken.
        for step in 1...5_000 as ClosedRange<UInt64> {
            let filter = "\(Int.random(in: 0..<400, using: &generator))"
            switch Int.random(in: 0..<12, using: &generator) {
            case 0:
                _ = try outbox.publish([publication("\(step)")])
                expected.append((.publish("\(step)"), nil))
            case 1:
                let count = Int.random(in: 1...2, using: &generator)
                _ = try outbox.publish((0..<count).map { _ in publication("\(step)", request: step) })
                expected += (0..<count).map { _ in (.publish("\(step)"), step) }
                requests.insert(step)
            case 2:
                guard let ended = requests.randomElement(using: &generator) else { continue }
                requests.remove(ended)
                outbox.withdraw(request: ended)
                expected.removeAll { $0.request == ended }
            case 3..<(step < 2_500 ? 4 : 8):
                let taken = outbox.next().map(Taken.init)
                try #require(taken == (expected.isEmpty ? nil : expected.removeFirst().taken))
                if case .publish = taken { writing += 1 }
                if writing > 0, Bool.random(using: &generator) {
                    writing -= 1
                    _ = outbox.publicationDone()
                }
            case _ where subscribed.insert(filter).inserted:
                _ = outbox.subscribe(request(filter, step))
                expected.append((.subscribe([step]), nil))
                tickets[filter] = step
            default:
                subscribed.remove(filter)
                _ = outbox.unsubscribe(.raw(WireName(filter)))
                let undone = expected.lastIndex { $0.taken == .subscribe([tickets[filter] ?? 0]) }
                if let undone {
                    expected.remove(at: undone)
                } else {
                    expected.append((.unsubscribe("\(EventSelector.raw(WireName(filter)))"), nil))
                }
            }
            let publications = expected.count { if case .publish = $0.taken { true } else { false } }
            try #require(outbox.operations == expected.count && outbox.publications == publications + writing)
        }
        while let operation = outbox.next() {
            try #require(!expected.isEmpty && Taken(operation) == expected.removeFirst().taken)
        }
        #expect(expected.isEmpty)
    }

    @Test func withdrawnRequestIsNotSentAgain() throws {
        var outbox = Outbox(limits: OutboxLimits())
        for id in 1...3 as ClosedRange<UInt64> { _ = try outbox.publish([publication("\(id)", request: id)]) }
        _ = outbox.next()
        _ = outbox.next()
        #expect(!outbox.isUnsent(request: 1) && outbox.isUnsent(request: 3))
        for id in [1, 3, 3] as [UInt64] { outbox.withdraw(request: id) }
        let givenUp = outbox.end()
        #expect(givenUp.isEmpty)
        #expect(outbox.next().map(Taken.init) == .publish("2"))
        #expect(outbox.next() == nil && outbox.publications == 1)
    }

    @Test func nothingIsSentAfterDisconnect() throws {
        var outbox = Outbox(limits: OutboxLimits())
        outbox.queueLast(farewell: publication("farewell"))
        _ = try outbox.publish([publication("late")])
        #expect(outbox.next().map(Taken.init) == .publish("farewell"))
        #expect(outbox.next().map(Taken.init) == .disconnect)
        #expect(outbox.next() == nil)
    }

    @Test func partlySentRequestIsNotUnsent() throws {
        var outbox = Outbox(limits: OutboxLimits())
        _ = try outbox.publish([publication("a", request: 1), publication("b", request: 1)])
        _ = outbox.next()
        _ = outbox.publicationDone()
        _ = outbox.end()
        #expect(!outbox.isUnsent(request: 1))
    }

    /// Publications are written in order: those that are handed over behind the interrupted one are not written.
    @Test func onlyTheOldestUnwrittenPublicationIsPartlyWritten() throws {
        var outbox = Outbox(limits: OutboxLimits())
        _ = try outbox.publish([publication("a"), publication("b"), publication("c")])
        _ = outbox.next()
        _ = outbox.next()
        var seen: [String: Bool] = [:]
        let extracted = outbox.end { publication, isPartly in
            seen[publication.topic] = isPartly
            return publication.topic != "b"
        }
        #expect(seen == ["a": true, "b": false, "c": false])
        #expect(extracted.map(\.topic) == ["a", "c"] && outbox.publications == 1)
        outbox.adopt(extracted, isFirst: true)
        #expect((0..<3).map { _ in outbox.next().map(Taken.init) } == [.publish("a"), .publish("c"), .publish("b")])
    }

    @Test func clientsOfPublicationsAreKnownUntilTheyAreWrittenOrWithdrawn() throws {
        var outbox = Outbox(limits: OutboxLimits(), countsClients: true)
        let (one, other) = (TestClient(), TestClient())
        var (first, second) = (publication("a"), publication("b", request: 1))
        (first.client, second.client) = (one, other)
        _ = try outbox.publish([first, first, second])
        #expect(outbox.holds(publicationsOf: one) && outbox.holds(publicationsOf: other))
        #expect(!outbox.holds(publicationsOf: nil))
        outbox.withdraw(request: 1)
        #expect(!outbox.holds(publicationsOf: other))
        _ = outbox.next()
        _ = outbox.publicationDone()
        _ = outbox.next()
        _ = outbox.end()
        #expect(outbox.holds(publicationsOf: one))
        _ = outbox.next()
        _ = outbox.publicationDone()
        #expect(!outbox.holds(publicationsOf: one))
    }

    @Test func joinEventsDoNotCountAndDoNotOutliveThePeriod() throws {
        var outbox = Outbox(limits: OutboxLimits(publications: 1, bytes: 100))
        let join = Publication(.raw(topic: "join", isRetained: false), payload: [], isJoinEvent: true)
        outbox.begin(subscriptions: [], joinEvents: [join, join])
        _ = try outbox.publish([publication("a")])
        #expect(outbox.publications == 1)
        _ = outbox.next()
        _ = outbox.end()
        #expect(outbox.next().map(Taken.init) == .publish("a"))
        #expect(outbox.next() == nil)
    }
}

extension Publication {
    fileprivate var topic: String {
        if case .raw(let topic, _) = destination { topic } else { "" }
    }
}
