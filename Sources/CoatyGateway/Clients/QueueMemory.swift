import Synchronization

/// The number of bytes queued for all clients together: collected responses, and the events and responses that outbound
/// queues hold, including events that throttling holds back.
final class QueueMemory: Sendable {
    /// The limit in bytes. Once it is reached, a subscription that would queue more follows its overflow policy, and a request
    /// that would queue more ends.
    static let limit = 256 << 20

    private let used = Atomic(0)

    /// Whether fewer bytes than the limit are queued.
    var hasRoom: Bool { used.load(ordering: .relaxed) < Self.limit }

    /// The queued bytes.
    var bytes: Int { used.load(ordering: .relaxed) }

    /// Adds to the number of queued bytes, or subtracts from it if `bytes` is negative. Never fails.
    ///
    /// - Returns: whether there is still room afterwards.
    @discardableResult
    func add(_ bytes: Int) -> Bool { used.add(bytes, ordering: .relaxed).newValue < Self.limit }
}
