import Testing

@testable import Coaty

/// A broker that answers a subscription by cutting the link, played by a link that the test drives by hand.
@Suite struct CutSubscriptionTests {
    private let binding = RecordingBinding()

    private func agent() throws -> CommunicationManager {
        try CommunicationManager(identity: Identity(name: "Agent"), options: CommunicationOptions { _ in binding })
    }

    /// A session with a broker that cuts the link upon some topic filters.
    ///
    /// - Returns: the packets that it got, and whether the session holds.
    private func session(cuttingUpon bad: Set<String>) throws -> (packets: [[String]], holds: Bool) {
        let link = try #require(binding.link)
        link.opened()
        var packets: [[String]] = []
        while true {
            let taken = link.takeSubscriptions()
            if taken.isEmpty { return (packets, true) }
            for (filters, ticket) in taken {
                packets.append(filters)
                guard bad.isDisjoint(with: filters) else {
                    link.closed()
                    return (packets, false)
                }
                link.subscribed(ticket)
            }
        }
    }

    private let discover = "coaty/3/-/DSC/+/+"

    @Test func isLeftOutWhereTheOthersStand() async throws {
        let agent = try agent()
        let seen = Recorder<String>()
        func observe(_ topic: String) throws -> Subscription {
            try agent.subscribe(rawTopic: topic, onStatus: { seen.append("\(topic) \($0)") }) { _ in }
        }
        var kept = try ["a", "bad", "b", "worse", "c"].map(observe)
        agent.start()
        for _ in 0..<SubscriptionTable.maximumLostSessions {
            let lost = try session(cuttingUpon: ["bad", "worse"])
            #expect(lost.packets == [[discover, "a", "bad", "b", "worse", "c"]] && !lost.holds)
        }
        #expect(Set(seen.values) == Set(["a", "bad", "b", "worse", "c"].map { "\($0) offline" }))
        // One by one, in the order in which they came, each when the one before was answered.
        let first = try session(cuttingUpon: ["bad", "worse"])
        #expect(first.packets == [[discover], ["a"], ["bad"]] && !first.holds)
        #expect(seen.values.dropFirst(5).first == "a standing")
        #expect(seen.values.count == 8 && Set(seen.values.suffix(2)) == ["bad refused", "a offline"])
        let second = try session(cuttingUpon: ["bad", "worse"])
        #expect(second.packets == [[discover], ["a"], ["b"], ["worse"]] && !second.holds)
        let third = try session(cuttingUpon: ["bad", "worse"])
        #expect(third.packets == [[discover], ["a"], ["b"], ["c"]] && third.holds)
        #expect(Set(seen.values.suffix(3)) == ["a standing", "b standing", "c standing"])
        #expect(agent.isOnline)
        kept.append(try observe("bad"))
        #expect(seen.values.last == "bad refused")

        // What comes later has a packet of its own at once, and the next session begins with one packet.
        kept.append(try observe("d"))
        let link = try #require(binding.link)
        let later = link.takeSubscriptions()
        #expect(later.map(\.filters) == [["d"]])
        link.closed()
        let fourth = try session(cuttingUpon: ["bad", "worse"])
        #expect(fourth.packets == [[discover, "a", "b", "c", "d"]] && fourth.holds)
        #expect(seen.values.count { $0 == "bad refused" } == 2 && !seen.values.contains("bad standing"))

        // Who subscribes anew, when nobody was left, is asked for anew; the broker needs not forget what it does not know.
        kept.removeAll()
        var forgotten: [String] = []
        while let operation = link.nextOperation() {
            if case .unsubscribe(let filter) = operation { forgotten.append(filter) }
        }
        #expect(Set(forgotten) == ["a", "b", "c", "d"])
        kept.append(try observe("bad"))
        #expect(link.takeSubscriptions().map(\.filters) == [["bad"]])
        await agent.stop()
    }

    /// The link is lost while nothing was asked, or when all was answered.
    @Test func noSubscriptionIsAtFaultWhereNoneIsUnanswered() async throws {
        let agent = try agent()
        let seen = Recorder<String>()
        let kept = try agent.subscribe(rawTopic: "a", onStatus: { seen.append("\($0)") }) { _ in }
        agent.start()
        let link = try #require(binding.link)
        for _ in 0..<10 {
            link.opened()
            link.closed()
        }
        #expect(seen.values == ["offline"])
        for _ in 0..<10 {
            #expect(try session(cuttingUpon: []).packets == [[discover, "a"]])
            link.closed()
        }
        #expect(seen.values.count == 21 && !seen.values.contains("refused"))
        // One by one, but the one that is next was not taken when the link is lost.
        for _ in 0..<2 { #expect(try !session(cuttingUpon: ["a"]).holds) }
        link.opened()
        guard case .subscribe([discover], let ticket) = link.nextOperation() else {
            Issue.record("one by one")
            return
        }
        link.subscribed(ticket)
        link.closed()
        #expect(try session(cuttingUpon: []).packets == [[discover], ["a"]])
        #expect(!seen.values.contains("refused"))
        withExtendedLifetime(kept) {}
        await agent.stop()
    }

    @Test func changesWhileItIsOneByOne() async throws {
        let agent = try agent()
        let seen = Recorder<String>()
        func observe(_ topic: String) throws -> Subscription {
            try agent.subscribe(rawTopic: topic, onStatus: { seen.append("\(topic) \($0)") }) { _ in }
        }
        let first = try observe("a")
        let second = try observe("b")
        agent.start()
        let link = try #require(binding.link)
        for _ in 0..<2 { #expect(try !session(cuttingUpon: ["a"]).holds) }
        link.opened()
        link.subscribed(try #require(link.takeSubscriptions().first?.ticket))
        // Ended while it is queued: it goes out all the same, as the others wait for its answer.
        first.cancel()
        second.cancel()
        let third = try observe("c")
        let again = try observe("a")
        let one = link.takeSubscriptions()
        #expect(one.map(\.filters) == [["a"]])
        link.subscribed(try #require(one.first?.ticket))
        let two = link.takeSubscriptions()
        #expect(two.map(\.filters) == [["c"]])
        #expect(!seen.values.contains("a standing"))
        link.subscribed(try #require(two.first?.ticket))
        let three = link.takeSubscriptions()
        #expect(three.map(\.filters) == [["a"]])
        link.subscribed(try #require(three.first?.ticket))
        #expect(link.takeSubscriptions().isEmpty)
        #expect(seen.values == ["a offline", "b offline", "c standing", "a standing"])
        withExtendedLifetime((third, again)) {}
        await agent.stop()
    }

    @Test func whatTheAgentNeedsIsNeverLeftOut() async throws {
        let agent = try agent()
        let seen = Recorder<SubscriptionStatus>()
        let own = agent.subscribe(.discover, onStatus: { seen.append($0) }) { _ in }
        agent.start()
        for _ in 0..<10 { #expect(try session(cuttingUpon: [discover]).packets == [[discover]]) }
        #expect(seen.values == [.offline])
        #expect(try session(cuttingUpon: []).holds)
        #expect(seen.values == [.offline, .standing])
        withExtendedLifetime(own) {}
        await agent.stop()
    }

    @Test(arguments: [(Duration.zero, ["own", "bad"]), (.seconds(3600), ["own"])])
    func isAskedForAgainLater(_ retryInterval: Duration, _ expected: [String]) {
        let table = SubscriptionTable(retryInterval: retryInterval)
        func add(_ topic: String, isPermanent: Bool) {
            _ = table.add(
                .topic(TopicLevel(topic)),
                topicFilter: topic,
                decode: { RawEvent(topic: $0.topic, payload: $0.payload) },
                handler: { (_: RawEvent) in },
                onEnd: nil,
                isPermanent: isPermanent,
                changed: { _, _ in }
            )
        }
        add("own", isPermanent: true)
        add("bad", isPermanent: false)
        var asked: [String] = []
        var last: UInt64 = 0
        func open() { table.open { (asked, last) = ($0, $1) } }
        func answer() { table.acknowledge(last, refused: []) { (asked, last) = ([$0], $1) } }
        for _ in 0..<2 {
            open()
            #expect(table.close { [] } == nil)
        }
        open()
        answer()
        #expect(asked == ["bad"])
        #expect(table.close { [] } == "bad")
        // Not before a session holds.
        open()
        #expect(asked == ["own"])
        answer()
        #expect(asked == ["own"] && table.close { [] } == nil)
        open()
        #expect(asked == expected)
    }
}
