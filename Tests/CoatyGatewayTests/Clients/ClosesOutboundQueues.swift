import Synchronization
import Testing

@testable import Base
@testable import Feeds

/// Gives each test a pool of workers, and closes the test's outbound queues when it ends, as connections do. Until
/// then, an outbound queue and its subscriptions retain each other.
struct ClosesOutboundQueues: SuiteTrait, TestTrait, TestScoping {
    /// The outbound queues that the running test has created.
    final class Made: Sendable {
        private struct Entry {
            weak var outbound: OutboundQueue?
        }

        private let entries = Mutex<[Entry]>([])
        let workers = WorkerPool(name: "test", threads: 2)

        init() { workers.start() }

        func add(_ outbound: OutboundQueue) { entries.withLock { $0.append(Entry(outbound: outbound)) } }

        func close() {
            let outbounds = entries.withLock { entries in entries.compactMap(\.outbound) }
            for outbound in outbounds { outbound.close() }
        }

        func stop() async {
            close()
            await workers.stop()
        }
    }

    @TaskLocal static var made = Made()

    /// True, so that each test has its own list, not each suite.
    var isRecursive: Bool { true }

    func provideScope(for test: Test, testCase: Test.Case?, performing function: () async throws -> Void) async throws {
        let made = Made()
        do {
            try await Self.$made.withValue(made) { try await function() }
        } catch {
            await made.stop()
            throw error
        }
        await made.stop()
    }
}

extension Trait where Self == ClosesOutboundQueues {
    /// Closes the outbound queues of each test when it ends.
    static var closesOutboundQueues: Self { Self() }
}
