import DequeModule
import Synchronization

/// What all sources have said lately, for clients that come back. Bounded in bytes: the oldest goes first.
final class ResumeMemory: Sendable {
    private struct State {
        var records: Deque<EventRecord> = []
        /// The number of the first record; they are counted from 0.
        var first: UInt64 = 0
        var bytes = 0
    }

    /// The most bytes.
    let limit: Int
    private let state = Mutex(State())

    init(limit: Int) {
        self.limit = limit
    }

    /// Keeps a record.
    ///
    /// - Returns: its number, by which it is found while it is kept, and the number of the first that is.
    func insert(_ record: EventRecord) -> (number: UInt64, first: UInt64) {
        state.withLock { state in
            let number = state.first + UInt64(state.records.count)
            state.records.append(record)
            state.bytes += record.size
            while state.bytes > limit, let oldest = state.records.popFirst() {
                state.bytes -= oldest.size
                state.first += 1
            }
            return (number, state.first)
        }
    }

    /// The records of these numbers that are still kept.
    func records(_ numbers: some Sequence<UInt64>) -> [EventRecord] {
        state.withLock { state in
            numbers.compactMap { number in
                number < state.first ? nil : state.records[Int(number - state.first)]
            }
        }
    }
}
