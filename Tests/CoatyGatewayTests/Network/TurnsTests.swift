import Coaty
import Testing
import TestSupport

@testable import Network

/// Changes of one context run one after the other, and the number of waiting changes is bounded.
@Suite(.exclusive) struct TurnsTests {
    @Test func waitingChangesAreBoundedByTheSetting() async throws { try await change() }

    @ControllerActor private func change() async throws {
        let turns = Turns(maximumWaiting: 1)
        let id = CoatyUUID()
        let (started, start) = AsyncStream.makeStream(of: Int.self)
        let (gate, opener) = AsyncStream.makeStream(of: Void.self)
        func change(_ number: Int) -> Task<Void, any Error> {
            Task { @ControllerActor in
                try await turns.take(id) {
                    start.yield(number)
                    for await _ in gate { return }
                }
            }
        }
        var order = started.makeAsyncIterator()
        let first = change(1)
        #expect(await order.next() == 1)
        let second = change(2)
        // The third change starts after the second.
        let third = change(3)
        await #expect(throws: Turns.Full.self) { try await third.value }
        opener.finish()
        try await first.value
        try await second.value
        #expect(await order.next() == 2)
        try await turns.take(id) {}
    }
}
