import Synchronization

/// Counts what may come without end. It is told at 1, 2, 4, 8…, so that it can't fill the log.
final class DoublingCounter: Sendable {
    private let count = Atomic(0)

    /// How many there were.
    var value: Int { count.load(ordering: .relaxed) }

    /// Counts one more.
    ///
    /// - Returns: the count where it is to be told.
    func increment() -> Int? {
        let count = count.add(1, ordering: .relaxed).newValue
        return count & (count - 1) == 0 ? count : nil
    }
}
