import Synchronization

@testable import Coaty

/// Maximum time that a test waits for an event.
let patience = Duration.seconds(20)

struct TimedOut: Error {}

/// Waits for an asynchronous result, but no longer than ``patience``.
func withPatience<Result: Sendable>(_ body: @escaping @Sendable () async throws -> Result) async throws -> Result {
    try await withThrowingTaskGroup(of: Result.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try await Task.sleep(for: patience)
            throw TimedOut()
        }
        defer { group.cancelAll() }
        guard let first = try await group.next() else { throw TimedOut() }
        return first
    }
}

extension CommunicationManager {
    func untilOnline(_ wanted: CommunicationState = .online) async throws {
        try await withPatience { [self] in
            for await state in getCommunicationState() where state == wanted { return }
            throw TimedOut()
        }
    }
}

/// A log of values in order, written by any thread.
final class Recorder<Value: Sendable>: Sendable {
    private let recorded = Mutex<[Value]>([])

    func append(_ value: Value) { recorded.withLock { $0.append(value) } }
    var values: [Value] { recorded.withLock(\.self) }

    func wait(for count: Int) async throws -> [Value] {
        try await withPatience { [self] in
            while values.count < count { try await Task.sleep(for: .milliseconds(1)) }
            return values
        }
    }
}
