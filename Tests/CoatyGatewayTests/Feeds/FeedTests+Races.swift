import Coaty
import Synchronization
import Testing

@testable import Feeds

/// Concurrent use of a feed.
extension FeedTests {
    private final class Count: Sendable {
        let value = Atomic(0)
    }

    /// While events are published concurrently, each subscription gets every event after its start exactly once and in
    /// order, and no event that is published after its removal has returned.
    @Test func subscriptionsMayBeAddedAndRemovedConcurrently() async throws {
        let feed = feed(nil, nil)
        let events = try (1...400).map { try Made.event(1, $0) }
        let published = Count()
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for event in events {
                    published.value.add(1, ordering: .sequentiallyConsistent)
                    feed.deliver(event)
                    await Task.yield()
                }
            }
            group.addTask { feed.update(.standing) }
            for task in 0..<4 {
                group.addTask {
                    for turn in 0..<50 {
                        let transport = SteeredTransport()
                        let outbound = OutboundQueue(transport)
                        let subscription = outbound.open(id: "l", options: Made.options { $0.buffer = 4096 })
                        feed.add(subscription)
                        for _ in 0...(task + turn % 3) { await Task.yield() }
                        outbound.close(subscription)
                        feed.remove(subscription)
                        let last = published.value.load(ordering: .sequentiallyConsistent)
                        let before = transport.frames
                        await Task.yield()
                        #expect(transport.frames == before)
                        let delivered = (try? transport.delivered) ?? []
                        let numbers = delivered.compactMap(\.event)
                        if let first = numbers.first {
                            #expect(delivered.first?.content == .ok)
                            #expect(numbers == Array(first..<first + numbers.count))
                            #expect(first + numbers.count - 1 <= last)
                        }
                    }
                }
            }
        }
    }

    @Test func resumingWhileEventsArriveDeliversEachOnce() async throws {
        let feed = feed()
        let events = try (1...300).map { try Made.event(1, $0) }
        feed.add(try subscription("a"))
        feed.deliver(events[0])
        try await settled()
        let first = try cursor(1)
        let transports = (0..<8).map { _ in SteeredTransport() }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for event in events.dropFirst() { feed.deliver(event) } }
            for transport in transports {
                group.addTask {
                    let outbound = OutboundQueue(transport)
                    feed.add(outbound.open(id: "l", options: Made.options { $0.since = .plain(first) }))
                }
            }
        }
        for transport in transports {
            try await untilTrue("all came") { transport.frames.count >= 300 }
            #expect(try transport.delivered.compactMap(\.event) == Array(2...300))
            #expect(try transport.delivered.count == 300)
        }
    }

    @Test func endIsDeliveredOnceAndLast() async throws {
        for _ in 0..<50 {
            let feed = feed()
            let events = try (1...20).map { try Made.event(1, $0) }
            let transports = (0..<3).map { _ in SteeredTransport() }
            await withTaskGroup(of: Void.self) { group in
                group.addTask { for event in events { feed.deliver(event) } }
                group.addTask { feed.end() }
                group.addTask { feed.end() }
                for transport in transports {
                    group.addTask {
                        feed.add(OutboundQueue(transport, hasOneSubscription: true).open(id: nil))
                    }
                }
            }
            for transport in transports {
                let delivered = try transport.delivered.map(\.content)
                // A subscription that is added after the end gets an error.
                let end = delivered.count == 1 ? DeliveredFrame.Content.error : .done("withdrawn")
                #expect(delivered.last == end)
                #expect(delivered.filter { $0 == end }.count == 1)
                #expect(transport.finished == [delivered.count == 1 ? .refused(status: 404) : .done(.withdrawn)])
            }
        }
    }
}
