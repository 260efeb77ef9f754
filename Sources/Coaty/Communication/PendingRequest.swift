import Synchronization

/// A request that is under way.
///
/// It lasts until it is cancelled or released, and at most until the communication manager stops. A request that was published while
/// the agent is not connected waits for the connection as long as it lasts. When it ends before it was sent, it is
/// withdrawn: nobody will execute it.
public final class PendingRequest: Sendable {
    /// Whether the request goes out now or waits for a connection.
    public let delivery: Delivery
    private let onCancel: Mutex<(@Sendable () -> Void)?>
    private let onWithdraw: @Sendable () -> Bool

    /// - Parameter onWithdraw: withdraws what is queued, and returns whether nothing was handed over.
    init(
        delivery: Delivery,
        onWithdraw: @escaping @Sendable () -> Bool,
        onCancel: @escaping @Sendable () -> Void
    ) {
        self.delivery = delivery
        self.onWithdraw = onWithdraw
        self.onCancel = Mutex(onCancel)
    }

    /// Ends the request. A handler that runs on another thread at this moment may run to its end.
    public func cancel() {
        onCancel.withLock { $0.take() }?()
    }

    /// Ends the request if nothing of it was sent; otherwise it goes on.
    ///
    /// - Returns: whether it was withdrawn: nothing of it was or will be sent.
    public func withdraw() -> Bool {
        guard onWithdraw() else { return false }
        cancel()
        return true
    }

    deinit { cancel() }
}
