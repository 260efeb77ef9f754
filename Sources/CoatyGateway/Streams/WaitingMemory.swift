import Synchronization

/// The bytes that wait for all clients together: responses that are collected, and what streams have not written yet or hold
/// back by throttling.
final class WaitingMemory: Sendable {
    /// How many may wait; then who would take more ends, or loses, what its own bounds say.
    static let limit = 256 << 20

    private let used = Atomic(0)

    /// Whether there is room for more.
    var hasRoom: Bool { used.load(ordering: .relaxed) < Self.limit }

    /// The bytes that wait.
    var bytes: Int { used.load(ordering: .relaxed) }

    /// Changes what is used by a number of bytes.
    ///
    /// - Returns: whether there is room for more after this.
    @discardableResult
    func add(_ bytes: Int) -> Bool { used.add(bytes, ordering: .relaxed).newValue < Self.limit }
}
