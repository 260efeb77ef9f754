import Synchronization
import Testing

@testable import CoatyGateway

/// Closes the outlets of a test when it ends, as a connection closes its own: until then an outlet and its lanes hold each
/// other.
struct ClosesOutlets: SuiteTrait, TestTrait, TestScoping {
    /// The outlets that the running test has made.
    final class Made: Sendable {
        private struct Entry {
            weak var outlet: Outlet?
        }

        private let entries = Mutex<[Entry]>([])

        func add(_ outlet: Outlet) { entries.withLock { $0.append(Entry(outlet: outlet)) } }

        func close() {
            let outlets = entries.withLock { entries in entries.compactMap(\.outlet) }
            for outlet in outlets { outlet.close() }
        }
    }

    @TaskLocal static var made = Made()

    /// Each test has a list of its own, not each suite.
    var isRecursive: Bool { true }

    func provideScope(for test: Test, testCase: Test.Case?, performing function: () async throws -> Void) async throws {
        let made = Made()
        defer { made.close() }
        try await Self.$made.withValue(made) { try await function() }
    }
}

extension Trait where Self == ClosesOutlets {
    /// Closes the outlets of each test when it ends.
    static var closesOutlets: Self { Self() }
}
