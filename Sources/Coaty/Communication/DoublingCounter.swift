import Synchronization

/// Counts events of unlimited number, and reports counts 1, 2, 4, 8…, so that they can't fill the log.
package final class DoublingCounter: Sendable {
    private let count = Atomic(0)

    package init() {}

    /// The number of counted events.
    var value: Int { count.load(ordering: .relaxed) }

    /// Counts one event.
    ///
    /// - Returns: the count if it should be reported; otherwise nil.
    package func increment() -> Int? {
        let count = count.add(1, ordering: .relaxed).newValue
        return count & (count - 1) == 0 ? count : nil
    }
}
