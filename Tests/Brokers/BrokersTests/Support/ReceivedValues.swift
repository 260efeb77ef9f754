import Synchronization

/// Values that handlers of any thread have recorded, in order.
final class ReceivedValues<Value: Sendable>: Sendable {
    private let recorded = Mutex<[Value]>([])

    /// Records a value.
    func append(_ value: Value) { recorded.withLock { $0.append(value) } }

    /// The values so far.
    var values: [Value] { recorded.withLock(\.self) }

    /// The number of values so far.
    var count: Int { recorded.withLock(\.count) }
}
