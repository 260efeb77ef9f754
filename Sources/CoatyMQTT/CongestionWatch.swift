/// Detects that the broker may have dropped messages because the agent has not read them in time.
///
/// A broker silently drops messages of QoS 0 if it can't write them for some time. It can't write while the receive
/// buffer is full. This is a value without side effects: it is updated with the state of the buffer before each read.
struct CongestionWatch {
    typealias Instant = ContinuousClock.Instant

    /// Minimum time for which the buffer must have been full. A shorter burst fits into the buffers of both ends.
    static let patience = Duration.milliseconds(200)
    /// The time without a full buffer after which the broker is assumed to have written everything. The kernel frees
    /// memory in steps, and at the end of each step, the buffer is not full for a moment.
    static let calm = Duration.milliseconds(50)
    /// The time without incoming bytes that shows that the broker had nothing more to write.
    static let pause = Duration.milliseconds(5)
    /// Minimum interval between reports.
    static let reportInterval = Duration.seconds(1)

    /// Since when the buffer has been full, ignoring short interruptions.
    private var fullSince: Instant?
    private var lastFull: Instant?
    /// Since when messages may have been dropped without a report.
    private var lossSince: Instant?
    private var lastReport: Instant?

    /// Records that no bytes arrived for some time.
    mutating func notePause(of duration: Duration) {
        if duration >= Self.pause { (fullSince, lastFull) = (nil, nil) }
    }

    /// Records the state of the buffer.
    ///
    /// - Parameter idle: the time since the last bytes arrived. A full buffer accepts no more bytes, so it has been
    ///   full since then.
    mutating func note(isFull: Bool, idle: Duration, now: Instant) {
        if let lastFull, now - lastFull > Self.calm { fullSince = nil }
        guard isFull else { return }
        let since = min(fullSince ?? now, now - idle)
        (fullSince, lastFull) = (since, now)
        if now - since >= Self.patience, lossSince == nil { lossSince = now }
    }

    /// Returns whether a loss should be reported now: when all messages that the broker had queued were read and, while
    /// that takes long, once per ``reportInterval``.
    mutating func takeLoss(now: Instant) -> Bool {
        guard let since = lossSince, lastReport.map({ now - $0 >= Self.reportInterval }) ?? true else { return false }
        let isOver = lastFull.map { now - $0 > Self.calm } ?? true
        guard isOver || now - since >= Self.reportInterval else { return false }
        (lossSince, lastReport) = (nil, now)
        return true
    }
}
