import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// The status that an observer receives for its subscription, on a session that the test controls.
@Suite(.exclusive) struct SubscriptionStatusTests {
    private func agent(_ binding: any Binding) throws -> CommunicationManager {
        try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions { _ in binding }
        )
    }

    private func online() throws -> (CommunicationManager, RecordedSession) {
        let binding = RecordingBinding()
        let agent = try agent(binding)
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        _ = link.takeSubscriptions()
        return (agent, link)
    }

    private let topic = "coaty/3/-/CHN:c/00000000-0000-4000-8000-000000000000"

    private func message() throws -> [UInt8] {
        let object = CoatyObject(coreType: .CoatyObject, objectType: "t", objectId: .init(), name: "n")
        return try ChannelEvent.with(object: object, channelId: "c").payload.bytes
    }

    @Test func reportsAcknowledgedSubscriptions() throws {
        let (agent, link) = try online()
        let seen = Recorder<String>()
        let first = try agent.subscribe(.channel("c"), onStatus: { seen.append("first \($0)") }) { _ in
            seen.append("event")
        }
        let ticket = try #require(link.takeSubscriptions().first?.ticket)
        link.received(topic: topic, payload: try message())
        link.subscribed(ticket + 1)
        #expect(seen.values == ["event"])
        let second = try agent.subscribe(.channel("c"), onStatus: { seen.append("second \($0)") }) { _ in }
        link.subscribed(ticket)
        // The status is reported once; an observer that joins later gets only the current one.
        link.subscribed(ticket)
        let third = try agent.subscribe(.channel("c"), onStatus: { seen.append("third \($0)") }) { _ in }
        #expect(seen.values == ["event", "first standing", "second standing", "third standing"])
        withExtendedLifetime((first, second, third)) {}
    }

    @Test func reportsRefusedSubscriptions() throws {
        let (agent, link) = try online()
        let seen = Recorder<String>()
        let refused = try agent.subscribe(.channel("c"), onStatus: { seen.append("c \($0)") }) { _ in }
        let granted = try agent.subscribe(rawTopic: "é/#", onStatus: { seen.append("é \($0)") }) { _ in }
        let other = try agent.subscribe(rawTopic: "e\u{301}/#", onStatus: { seen.append("e\u{301} \($0)") }) { _ in }
        for (filters, ticket) in link.takeSubscriptions() {
            // The filter is equal to Swift, but another topic filter.
            link.subscribed(ticket, refused: filters[0].hasPrefix("coaty/") ? filters : ["\(filters[0])".flipped])
        }
        #expect(seen.values == ["c refused", "é standing", "e\u{301} standing"])
        let late = try agent.subscribe(.channel("c"), onStatus: { seen.append("late \($0)") }) { _ in }
        #expect(seen.values.last == "late refused")
        // The next connect subscribes to all filters again, in one packet.
        link.closed()
        link.opened()
        let all = link.takeSubscriptions()
        try #require(all.count == 1)
        link.subscribed(all[0].ticket, refused: ["é/#"])
        #expect(
            Set(seen.values.suffix(4)) == ["c standing", "late standing", "é refused", "e\u{301} standing"]
        )
        withExtendedLifetime((refused, granted, other, late)) {}
    }

    @Test func reportsLossBeforeTheNextSession() throws {
        let (agent, link) = try online()
        let seen = Recorder<String>()
        let own = agent.subscribe(.discover, onStatus: { seen.append("own \($0)") }) { _ in }
        let other = try agent.subscribe(.channel("c"), onStatus: { seen.append("\($0) \(agent.isConnected)") }) { _ in
            seen.append("event")
        }
        link.closed()
        #expect(Set(seen.values) == ["own offline", "offline false"])
        let late = try agent.subscribe(.channel("d"), onStatus: { seen.append("late \($0)") }) { _ in }
        #expect(seen.values.last == "late offline")
        link.opened()
        let all = link.takeSubscriptions()
        #expect(all.count == 1 && all.first?.filters.count == 3)
        link.received(topic: topic, payload: try message())
        #expect(seen.values.last == "event")
        link.subscribed(try #require(all.first?.ticket))
        #expect(Set(seen.values.dropFirst(4)) == ["own standing", "standing true", "late standing"])
        link.subscribed(try #require(all.first?.ticket))
        #expect(seen.values.count == 7)
        // A reply to a packet of an earlier connection is ignored.
        link.closed()
        link.opened()
        let count = seen.values.count
        link.subscribed(try #require(all.first?.ticket))
        #expect(seen.values.count == count)
        withExtendedLifetime((own, other, late)) {}
    }

    @Test func reportsOnlyChanges() throws {
        let (agent, link) = try online()
        let seen = Recorder<String>()
        let first = try agent.subscribe(.channel("c"), onStatus: { seen.append("first \($0)") }) { _ in }
        link.closed()
        link.opened()
        let second = try agent.subscribe(.channel("c"), onStatus: { seen.append("second \($0)") }) { _ in }
        #expect(seen.values == ["first offline"])
        // The connection is lost before the reply: the known status is not reported again.
        link.closed()
        #expect(seen.values == ["first offline", "second offline"])
        link.opened()
        link.closed()
        #expect(seen.values.count == 2)
        withExtendedLifetime((first, second)) {}
    }

    @Test func newSubscriptionSharesAcknowledgedFilter() throws {
        let binding = RecordingBinding()
        let agent = try agent(binding)
        let seen = Recorder<SubscriptionStatus>()
        let own = agent.subscribe(.discover, onStatus: { seen.append($0) }) { _ in }
        #expect(seen.values == [.offline])
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        link.subscribed(try #require(link.takeSubscriptions().first?.ticket))
        let late = agent.subscribe(.discover, onStatus: { seen.append($0) }) { _ in }
        #expect(seen.values == [.offline, .standing, .standing])
        #expect(link.takeSubscriptions().isEmpty)
        withExtendedLifetime((own, late)) {}
    }

    @Test func renewedSubscriptionIsAcknowledgedAgain() throws {
        let (agent, link) = try online()
        let seen = Recorder<String>()
        func subscribe(_ name: String) throws -> Subscription {
            try agent.subscribe(.channel("c"), onStatus: { seen.append("\(name) \($0)") }) { _ in }
        }
        let first = try subscribe("first")
        let ticket = try #require(link.takeSubscriptions().first?.ticket)
        first.cancel()
        let second = try subscribe("second")
        link.subscribed(ticket)
        #expect(seen.values == [])
        guard case .unsubscribe = link.nextOperation(), case .subscribe(_, let next) = link.nextOperation() else {
            Issue.record("expected both operations")
            return
        }
        link.subscribed(next)
        #expect(seen.values == ["second standing"])
        // A subscription that is canceled while queued is never sent.
        second.cancel()
        for _ in 0..<10 { try subscribe("passing").cancel() }
        #expect(agent.queued.operations == 1)
        let last = try subscribe("last")
        #expect(agent.queued.operations == 2)
        last.cancel()
    }

    @Test func aCallbackMaySubscribeCancelAndPublish() async throws {
        let broker = TopicBroker()
        let agent = try agent(TopicBinding(broker: broker))
        let held = Mutex<[Subscription]>([])
        let seen = Recorder<String>()
        let outer = try agent.subscribe(.channel("c")) { status in
            seen.append("outer \(status)")
            guard status == .standing else { return }
            do {
                let inner = try agent.subscribe(rawTopic: "t", onStatus: { seen.append("inner \($0)") }) { event in
                    seen.append(event.topic)
                }
                held.withLock { $0.append(inner) }
                try agent.subscribe(.channel("c")) { _ in }.cancel()
                try agent.publishRaw(.with(topic: "t", payload: []))
            } catch {
                Issue.record(error)
            }
        } handler: { _ in
        }
        agent.start()
        #expect(
            try await seen.wait(for: 4) == ["outer offline", "outer standing", "inner standing", "t"]
        )
        outer.cancel()
        await agent.stop()
    }

    /// The first status is reported on the thread that subscribes, events on another thread.
    @Test func callsDoNotOverlap() async throws {
        let (agent, link) = try online()
        let first = try agent.subscribe(.channel("c")) { _ in }
        link.subscribed(try #require(link.takeSubscriptions().first?.ticket))
        let payload = try message()
        let topic = topic
        let seen = Recorder<String>()
        let isUnderWay = DispatchSemaphore(value: 0)
        let second = try agent.subscribe(.channel("c")) { status in
            guard status == .standing else { return seen.append("\(status)") }
            Thread {
                isUnderWay.signal()
                link.received(topic: topic, payload: payload)
                link.closed()
            }.start()
            #expect(isUnderWay.wait(timeout: .now() + 20) == .success)
            // Long enough for the event to overtake the status if the calls were not serialized.
            usleep(20_000)
            seen.append("\(status)")
        } handler: { _ in
            seen.append("event")
        }
        #expect(try await seen.wait(for: 3) == ["standing", "event", "offline"])
        withExtendedLifetime((first, second)) {}
    }

    @Test func statusesStayInOrderAcrossReconnects() async throws {
        let (agent, link) = try online()
        let hasEnded = Atomic(false)
        Thread {
            for _ in 0..<100 {
                for (_, ticket) in link.takeSubscriptions() { link.subscribed(ticket) }
                link.closed()
                link.opened()
                sched_yield()
            }
            hasEnded.store(true, ordering: .releasing)
        }.start()
        var kept: [(Subscription, Recorder<SubscriptionStatus>)] = []
        for index in 0..<100 {
            let seen = Recorder<SubscriptionStatus>()
            kept.append((try agent.subscribe(.channel("\(index % 7)"), onStatus: { seen.append($0) }) { _ in }, seen))
            if index % 3 == 0 { kept.removeFirst() }
            sched_yield()
        }
        try await withPatience {
            while !hasEnded.load(ordering: .acquiring) { try await Task.sleep(for: .milliseconds(1)) }
        }
        for (_, ticket) in link.takeSubscriptions() { link.subscribed(ticket) }
        for (_, seen) in kept {
            let statuses = seen.values
            #expect(statuses.last == .standing)
            #expect(zip(statuses, statuses.dropFirst()).allSatisfy { $0 != $1 })
        }
    }
}

extension String {
    /// The same text in the other Unicode normalization form.
    fileprivate var flipped: String {
        let composed = precomposedStringWithCanonicalMapping
        return composed.utf8.elementsEqual(utf8) ? decomposedStringWithCanonicalMapping : composed
    }
}
