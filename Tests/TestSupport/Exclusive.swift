import Synchronization
public import Testing

/// A trait that runs the tests of all suites that have it one at a time, in all targets: also if `swift test` runs in
/// parallel. Many tests block a thread on sockets and processes, or wait for a time, and would starve each other.
///
/// A test waits for its turn outside its time limit.
public struct Exclusive: SuiteTrait, TestTrait, TestScoping {
    private static let tests = Turns()
    private static let cases = Turns()

    /// True, so that each test takes a turn, not each suite.
    public var isRecursive: Bool { true }

    /// A test takes a turn for all of its cases, and each case a turn among these.
    public func scopeProvider(for test: Test, testCase: Test.Case?) -> Exclusive? { test.isSuite ? nil : self }

    /// Runs a test or a case when it has the turn.
    public func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        let turns = testCase == nil ? Self.tests : Self.cases
        await turns.take()
        defer { turns.pass() }
        try await function()
    }
}

extension Trait where Self == Exclusive {
    /// Runs the tests one at a time.
    public static var exclusive: Self { Self() }
}

/// A lock that suspends tasks, in the order of their calls.
private final class Turns: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func take() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                guard state.isTaken else {
                    state.isTaken = true
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    func pass() {
        let next = state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isTaken = false
                return nil as CheckedContinuation<Void, Never>?
            }
            return state.waiting.removeFirst()
        }
        next?.resume()
    }
}
