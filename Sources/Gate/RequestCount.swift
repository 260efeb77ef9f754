import Synchronization

/// Counts the requests of clients: all since the gateway started, and the pending ones.
package final class RequestCount: Sendable {
    private let begun = Atomic(0)
    private let ended = Atomic(0)

    func begin() { begun.add(1, ordering: .relaxed) }
    /// Counts a request that can't be published.
    func countOne() {
        begin()
        end()
    }

    func end() { ended.add(1, ordering: .releasing) }

    package var total: Int { begun.load(ordering: .relaxed) }

    package var pending: Int {
        // `ended` is loaded first, so that the difference is never negative.
        let ended = ended.load(ordering: .acquiring)
        return begun.load(ordering: .relaxed) - ended
    }
}
