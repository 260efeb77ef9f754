/// Notices that the broker may have dropped messages because the agent has not read them in time.
///
/// A broker drops messages of QoS 0, without a word, if it can't write them for some time. It can't write while the receive buffer is
/// full. A value without effects: it is shown the buffer each time before it is read.
struct CongestionWatch {
    typealias Instant = ContinuousClock.Instant

    /// How long the buffer must have been full. A shorter burst fits into the buffers of both ends.
    static let patience = Duration.milliseconds(200)
    /// After how long without a full buffer the broker is taken to have written everything. The kernel makes room in steps, and at the end of
    /// each the buffer is not full for a moment.
    static let calm = Duration.milliseconds(50)
    /// Time without anything to read that shows that the broker had nothing more to write.
    static let pause = Duration.milliseconds(5)
    /// How often a loss is reported at most.
    static let reportInterval = Duration.seconds(1)

    /// Since when the buffer has been full, but for moments.
    private var fullSince: Instant?
    private var lastFull: Instant?
    /// Since when messages may have been lost that were not reported.
    private var lossSince: Instant?
    private var lastReport: Instant?

    /// Notes that nothing was to be read for some time.
    mutating func notePause(of duration: Duration) {
        if duration >= Self.pause { (fullSince, lastFull) = (nil, nil) }
    }

    /// Notes the state of the buffer.
    ///
    /// - Parameter idle: how long ago the last bytes arrived. A full buffer takes no more: it has been full since then.
    mutating func note(isFull: Bool, idle: Duration, now: Instant) {
        if let lastFull, now - lastFull > Self.calm { fullSince = nil }
        guard isFull else { return }
        let since = min(fullSince ?? now, now - idle)
        (fullSince, lastFull) = (since, now)
        if now - since >= Self.patience, lossSince == nil { lossSince = now }
    }

    /// Returns whether a loss is to be reported now: when everything was read that the broker had queued, and while that takes long, once
    /// in ``reportInterval``.
    mutating func takeLoss(now: Instant) -> Bool {
        guard let since = lossSince, lastReport.map({ now - $0 >= Self.reportInterval }) ?? true else { return false }
        let isOver = lastFull.map { now - $0 > Self.calm } ?? true
        guard isOver || now - since >= Self.reportInterval else { return false }
        (lossSince, lastReport) = (nil, now)
        return true
    }
}
