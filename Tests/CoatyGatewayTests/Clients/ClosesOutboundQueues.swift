import Synchronization
import Testing

@testable import CoatyGateway

/// Closes the outbound queues of a test when it ends, as connections do. Until then, an outbound queue and its subscriptions
/// retain each other.
struct ClosesOutboundQueues: SuiteTrait, TestTrait, TestScoping {
    /// The outbound queues that the running test has created.
    final class Made: Sendable {
        private struct Entry {
            weak var outbound: OutboundQueue?
        }

        private let entries = Mutex<[Entry]>([])

        func add(_ outbound: OutboundQueue) { entries.withLock { $0.append(Entry(outbound: outbound)) } }

        func close() {
            let outbounds = entries.withLock { entries in entries.compactMap(\.outbound) }
            for outbound in outbounds { outbound.close() }
        }
    }

    @TaskLocal static var made = Made()

    /// True, so that each test has its own list, not each suite.
    var isRecursive: Bool { true }

    func provideScope(for test: Test, testCase: Test.Case?, performing function: () async throws -> Void) async throws {
        let made = Made()
        defer { made.close() }
        try await Self.$made.withValue(made) { try await function() }
    }
}

extension Trait where Self == ClosesOutboundQueues {
    /// Closes the outbound queues of each test when it ends.
    static var closesOutboundQueues: Self { Self() }
}
