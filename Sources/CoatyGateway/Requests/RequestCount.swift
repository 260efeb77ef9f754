import Synchronization

/// Counts the requests of clients: those that have been asked since the start, and those that wait for responses.
final class RequestCount: Sendable {
    private let asked = Atomic(0)
    private let ended = Atomic(0)

    func begin() { asked.add(1, ordering: .relaxed) }
    func end() { ended.add(1, ordering: .releasing) }

    var total: Int { asked.load(ordering: .relaxed) }

    var waiting: Int {
        // In this order, so that it is never less than none.
        let ended = ended.load(ordering: .acquiring)
        return asked.load(ordering: .relaxed) - ended
    }
}
