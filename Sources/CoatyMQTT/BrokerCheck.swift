/// Notices that the broker no longer answers, earlier than the keepalive does.
///
/// If nothing has arrived from the broker for an interval, it is sent an UNSUBSCRIBE packet for ``filter``, which every
/// broker answers and which needs no permission. If nothing arrives for another interval, the connection is lost. A
/// PINGREQ would do the same, but libmosquitto sends it only at the keepalive, which has a minimum of five seconds.
///
/// This is a value without side effects: ask it for the next step about once a second.
struct BrokerCheck {
    typealias Instant = ContinuousClock.Instant

    enum Step: Equatable {
        case nothing
        /// Send the packet, and call ``asked(through:_:now:)``, or ``blocked(_:now:)`` if it can't be sent.
        case ask
        /// The broker does not answer.
        case lost
    }

    /// Neither the filter of an event nor one that raw events may be observed with, so it is never subscribed.
    static let filter = "coaty/broker-check"

    /// Zero for no checks.
    let interval: Duration
    /// Whether the packet was sent, or is to be sent, and nothing has arrived since then.
    private var isAsked = false
    /// Since when there was no progress: nothing has arrived, nor was any byte up to the packet acknowledged.
    private var waitsSince = Instant.now
    /// The number of bytes up to the end of the packet; nil if it is not sent.
    private var end: Int?
    private var last = TCPProgress()

    init(interval: Duration) { self.interval = interval }

    /// Returns what to do now.
    mutating func step(_ progress: TCPProgress, now: Instant) -> Step {
        if progress.arrived != last.arrived { isAsked = false }
        guard interval > .zero, progress.idle >= interval else { return .nothing }
        guard isAsked else { return .ask }
        // On a slow network, the packet may need longer than the interval to arrive.
        let isOnItsWay = end.map { last.acknowledged < $0 } ?? true
        if isOnItsWay, progress.acknowledged > last.acknowledged { waitsSince = now }
        last = progress
        // The second condition is not met if the machine was suspended.
        if now - waitsSince >= interval, progress.idle >= interval * 2 { return .lost }
        return end == nil ? .ask : .nothing
    }

    /// Records that the packet was sent.
    ///
    /// - Parameters:
    ///   - end: the number of sent bytes up to its end.
    ///   - progress: the progress before it was sent.
    mutating func asked(through end: Int, _ progress: TCPProgress, now: Instant) {
        (isAsked, waitsSince, self.end, last) = (true, now, end, progress)
    }

    /// Records that the packet can't be sent, because the socket has not accepted the packets before it.
    mutating func blocked(_ progress: TCPProgress, now: Instant) {
        guard !isAsked else { return }
        (isAsked, waitsSince, end, last) = (true, now, nil, progress)
    }
}
