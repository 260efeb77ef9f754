import Dispatch

/// Runs an operation that blocks its thread, on a separate thread that no task uses.
@discardableResult
package func onBlockingThread<Value: Sendable>(_ operation: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        // A serial queue gets a separate thread when it needs one.
        DispatchQueue(label: "blocking").async {
            continuation.resume(returning: operation())
        }
    }
}
