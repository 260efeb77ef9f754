import Coordination
import Synchronization
import Testing

/// A log of events in order, written by any thread.
final class Journal: Sendable {
    private let state = Mutex<[String]>([])

    var lines: [String] { state.withLock { $0 } }
    func write(_ line: String) { state.withLock { $0.append(line) } }
}

struct Refusal: Error, Equatable {
    let by: String
}

/// A component that records its calls, and then runs the steps that a test has set.
final class Recorder: Component {
    typealias Step = @Sendable () async throws -> Void

    let name: String
    private let journal: Journal
    private let steps = Mutex<[String: Step]>([:])
    private let running = Mutex(false)

    init(_ name: String, _ journal: Journal) {
        self.name = name
        self.journal = journal
    }

    func on(_ call: String, do step: @escaping Step) {
        steps.withLock { $0[call] = step }
    }

    func start() async throws { try await record("start") }
    func stop() async { await recordUnfailing("stop") }
    func pause() async { await recordUnfailing("pause") }
    func resume() async { await recordUnfailing("resume") }

    private func recordUnfailing(_ call: String) async {
        do { try await record(call) } catch { Issue.record("\(call) of \(name) threw \(error)") }
    }

    private func record(_ call: String) async throws {
        let overlaps = running.withLock { running in
            defer { running = true }
            return running
        }
        if overlaps { Issue.record("\(call) of \(name) began while another call was running") }
        defer { running.withLock { $0 = false } }
        journal.write("\(call) \(name)")
        await Task.yield()
        try await steps.withLock { $0[call] }?()
    }
}

func coordinator(_ name: String, _ journal: Journal) -> Coordinator<Recorder> {
    Coordinator(name: name, component: Recorder(name, journal))
}

/// root, below it a (with a1, a2) and b; all active.
struct Tree {
    let journal = Journal()
    let root, a, a1, a2, b: Coordinator<Recorder>

    init() async throws {
        root = coordinator("root", journal)
        a = coordinator("a", journal)
        a1 = coordinator("a1", journal)
        a2 = coordinator("a2", journal)
        b = coordinator("b", journal)
        try await root.start()
        try await root.start(a)
        try await a.start(a1)
        try await a.start(a2)
        try await root.start(b)
    }

    var states: [CoordinatorState] { [root, a, a1, a2, b].map(\.state) }

    /// Returns the lines written while `body` runs.
    func lines(_ body: () async throws -> Void) async rethrows -> [String] {
        let before = journal.lines.count
        try await body()
        return Array(journal.lines.dropFirst(before))
    }
}
