import Synchronization

/// A request that is under way.
///
/// It lasts until it is cancelled or released, and at most until the communication manager stops. A request that was published while
/// the agent is not connected waits for the connection as long as it lasts. When it ends before it was sent, it is
/// withdrawn: nobody will execute it.
public final class PendingRequest: Sendable {
    /// Whether the request goes out now or waits for a connection.
    public let delivery: Delivery
    private let onCancel: Mutex<(@Sendable () -> Bool)?>

    init(delivery: Delivery, onCancel: @escaping @Sendable () -> Bool) {
        self.delivery = delivery
        self.onCancel = Mutex(onCancel)
    }

    /// Ends the request. A handler that runs on another thread at this moment may run to its end.
    ///
    /// - Returns: whether the request was withdrawn: nothing of it was or will be sent.
    @discardableResult
    public func cancel() -> Bool {
        onCancel.withLock { $0.take() }?() ?? false
    }

    deinit { cancel() }
}
