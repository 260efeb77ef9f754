/// A request that was published and has not ended.
///
/// It lasts until it is cancelled or released, and at most until the communication manager stops. A request that was
/// published while the agent is not connected is queued for the next connection. If it ends before it was sent, it is
/// withdrawn and no agent executes it.
public final class PendingRequest: Sendable {
    /// Whether the request is sent now or queued for a connection.
    public let delivery: Delivery
    let ending: Ending
    private let onWithdraw: @Sendable () -> Bool

    /// - Parameter onWithdraw: withdraws the queued publications, and returns whether none was handed over.
    init(
        delivery: Delivery,
        onWithdraw: @escaping @Sendable () -> Bool,
        onCancel: @escaping @Sendable () -> Void
    ) {
        self.delivery = delivery
        self.onWithdraw = onWithdraw
        ending = Ending(onCancel)
    }

    /// Ends the request. A handler that is running on another thread may finish after this call.
    public func cancel() { ending.reach() }

    /// Ends the request if no part of it was sent; otherwise the request continues.
    ///
    /// - Returns: whether it was withdrawn: no part of it was or will be sent.
    public func withdraw() -> Bool {
        guard onWithdraw() else { return false }
        cancel()
        return true
    }

    deinit { cancel() }
}
