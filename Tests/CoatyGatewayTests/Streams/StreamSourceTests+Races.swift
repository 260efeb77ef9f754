import Coaty
import Synchronization
import Testing

@testable import CoatyGateway

/// Whatever happens at the same time.
extension StreamSourceTests {
    private final class Count: Sendable {
        let value = Atomic(0)
    }

    /// However subscriptions come and go while events are said: each is told without a hole from where it began, in order and
    /// once, and nothing that is said after its removal has returned.
    @Test func subscriptionsMayComeAndGoAtAnyTime() async throws {
        let source = source(nil, nil)
        let events = try (1...400).map { try Made.event(1, $0) }
        let said = Count()
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for event in events {
                    said.value.add(1, ordering: .sequentiallyConsistent)
                    source.say(event)
                    await Task.yield()
                }
            }
            group.addTask { source.update(.standing) }
            for task in 0..<4 {
                group.addTask {
                    for turn in 0..<50 {
                        let transport = SteeredTransport()
                        let outlet = Outlet(transport)
                        let lane = outlet.open(id: "l", options: Made.options { $0.buffer = 4096 })
                        source.add(lane)
                        for _ in 0...(task + turn % 3) { await Task.yield() }
                        outlet.close(lane)
                        source.remove(lane)
                        let last = said.value.load(ordering: .sequentiallyConsistent)
                        let before = transport.frames
                        await Task.yield()
                        #expect(transport.frames == before)
                        let told = (try? transport.told) ?? []
                        let numbers = told.compactMap(\.event)
                        if let first = numbers.first {
                            #expect(told.first?.content == .ok)
                            #expect(numbers == Array(first..<first + numbers.count))
                            #expect(first + numbers.count - 1 <= last)
                        }
                    }
                }
            }
        }
    }

    /// Who resumes while events are said gets each of them once.
    @Test func resumingLeavesNothingOut() async throws {
        let source = source()
        let events = try (1...300).map { try Made.event(1, $0) }
        source.add(try lane("a"))
        source.say(events[0])
        let first = try cursor(1)
        let transports = (0..<8).map { _ in SteeredTransport() }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for event in events.dropFirst() { source.say(event) } }
            for transport in transports {
                group.addTask {
                    let outlet = Outlet(transport)
                    source.add(outlet.open(id: "l", options: Made.options { $0.since = first }))
                }
            }
        }
        for transport in transports {
            try await untilTrue("all came") { transport.frames.count >= 300 }
            #expect(try transport.told.compactMap(\.event) == Array(2...300))
            #expect(try transport.told.count == 300)
        }
    }

    /// The end comes once, and last.
    @Test func theEndIsTheLastThatIsTold() async throws {
        for _ in 0..<50 {
            let source = source()
            let events = try (1...20).map { try Made.event(1, $0) }
            let transports = (0..<3).map { _ in SteeredTransport() }
            await withTaskGroup(of: Void.self) { group in
                group.addTask { for event in events { source.say(event) } }
                group.addTask { source.end() }
                group.addTask { source.end() }
                for transport in transports {
                    group.addTask {
                        source.add(Outlet(transport, hasOneLane: true).open(id: nil))
                    }
                }
            }
            for transport in transports {
                let told = try transport.told.map(\.content)
                // Who came too late is told so.
                let end = told.count == 1 ? Told.Content.error : .done("withdrawn")
                #expect(told.last == end)
                #expect(told.filter { $0 == end }.count == 1)
                #expect(transport.finished == [.withdrawn])
            }
        }
    }
}
