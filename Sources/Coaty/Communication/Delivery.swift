/// The outcome of publishing an event.
///
/// Neither case means that the broker has received it: Coaty publishes with QoS 0, which has no acknowledgement.
public enum Delivery: Sendable, Hashable {
    /// The agent is connected, and the publication is written to the connection in its turn. If the connection is lost
    /// earlier, the publication is queued for the next connection, as if it were deferred. A publication that was
    /// written but has not reached the broker when the connection breaks is lost.
    case sent
    /// The agent is not connected. The publication is queued for the next connection, unless its request ends or the
    /// communication manager stops earlier.
    case deferred
}
