/// A connection that carries frames to one client.
package protocol FrameTransport: Sendable {
    /// Queues a frame if the connection has space. If it returns `full`, the frame is not queued, and
    /// ``OutboundQueue/pump()`` is called when there is space again.
    func offer(_ frame: OutboundFrame) -> FrameOffer
    /// Queues the first frames of a batch, as many as the connection has space for, like ``offer(_:)-(OutboundFrame)``.
    ///
    /// - Returns: the number of queued frames, and `queued` if these are all; otherwise the reason why the next one is
    ///   not queued.
    func offer(_ batch: ObjectBatch) -> (number: Int, FrameOffer)
    /// Ends the connection after the queued frames, because its only subscription or request has ended, or an operator
    /// has disconnected it.
    func finish(_ end: ConnectionEnd)
    /// Ends the connection of a client that does not read the replies to its frames.
    func abort()
}

/// The result of offering a frame to a connection.
package enum FrameOffer: Sendable {
    case queued, full, closed
}
