import Base
import Coaty

/// Decides which subscriptions of a feed receive a retained message.
///
/// The gateway has one subscription at the broker for all clients of a feed, and requests it again for each new client.
/// The broker then sends all retained messages again, marked as such. A client must receive each of them once, and not
/// again for clients that arrive later: it receives a retained message if it has received no message of the topic since
/// it began.
///
/// Only while retained messages are expected, the feed keeps the position of the last message of each topic.
struct RetainedTopics: Sendable {
    /// The subscriptions that need a retained message.
    struct Receivers: Sendable {
        /// The position behind which subscriptions began that may need it.
        let start: UInt64

        func includes(_ subscription: ClientSubscription) -> Bool { subscription.arrival >= start }
    }

    /// The time for which retained messages are expected after a new subscription, or after the last of them.
    static let window = Duration.seconds(30)
    /// Maximum number of topics of a feed. A retained message of a further topic may be delivered again.
    static let maximumTopics = 10_000
    /// The memory of a topic, in bytes.
    static let cost = 64
    /// Number of topics that are charged at a time.
    private static let chargedTopics = 64

    /// The position of the first subscription for which retained messages are expected.
    private var first: UInt64 = 0
    /// The positions of the last messages.
    private var positions: [KeyedDigest: UInt64] = [:]
    private var charge: Charge?
    /// Whether retained messages are expected.
    private var isOpen = true
    /// The end of the window; nil while the broker has not acknowledged the subscription.
    private var end: ContinuousClock.Instant?

    /// Begins to expect all retained messages for all subscriptions, because the session was lost.
    mutating func reset() { self = RetainedTopics() }

    /// Starts the window, because the broker has acknowledged the subscription.
    mutating func acknowledged(at now: ContinuousClock.Instant) { if isOpen { end = now + Self.window } }

    /// Expects retained messages for a new subscription.
    mutating func expect(behind position: UInt64, at now: ContinuousClock.Instant) {
        if isOpen, end == nil { return }
        closeIfOver(now)
        if !isOpen { (first, isOpen) = (position, true) }
        end = now + Self.window
    }

    /// Notes a message.
    ///
    /// - Returns: the receivers of a retained message; nil if all subscriptions receive it.
    mutating func note(_ topic: WireName, isRetained: Bool, at position: UInt64, _ memory: BacklogMemory) -> Receivers?
    {
        guard isOpen else { return nil }
        let now = ContinuousClock.now
        closeIfOver(now)
        guard isOpen else { return nil }
        let key = KeyedDigest(topic)
        let last = positions[key]
        if last != nil || hasRoom(memory) { positions[key] = position }
        guard isRetained else { return nil }
        if end != nil { end = now + Self.window }
        return Receivers(start: max(first, last ?? 0))
    }

    private mutating func closeIfOver(_ now: ContinuousClock.Instant) {
        guard let end, now >= end else { return }
        reset()
        isOpen = false
    }

    private mutating func hasRoom(_ memory: BacklogMemory) -> Bool {
        guard positions.count < Self.maximumTopics else { return false }
        guard positions.count % Self.chargedTopics == 0 else { return true }
        let current = charge ?? memory.account().chargeAnyway(0)
        charge = current
        return current.resize(to: (positions.count + Self.chargedTopics) * Self.cost)
    }
}
