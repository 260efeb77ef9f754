import Synchronization

/// Publishes the values of an IO source of the agent according to the source's backpressure strategy and the negotiated
/// update rate.
///
/// The rate is the one that the router recommends with the associations. If there is none, each value is published
/// immediately; otherwise it depends on ``IoSource/updateStrategy``:
///
/// - `None`: each value is published immediately.
/// - `Sample`, also the default: the latest value is published at the end of each interval. The intervals start at the
///   association or the last change of the rate.
/// - `Throttle`: a value is published when an interval has passed without a newer value. A source whose values never
///   pause publishes nothing.
///
/// At most one value is pending: a new one replaces it. It is discarded when the rate changes and when the source is no
/// longer associated, as in the reference implementations. Any thread may publish.
///
/// A publisher lives as long as it is referenced, across restarts of the communication manager.
public final class IoSourcePublisher: Sendable {
    /// The outcome of publishing a value.
    public enum Outcome: Sendable, Hashable {
        /// It was published.
        case published(Delivery)
        /// It is queued until the end of an interval.
        case pending
        /// It was discarded: the source is not associated.
        case discarded
    }

    /// The longest interval, in milliseconds: the maximum of an ECMAScript timer. Longer intervals are reduced to it.
    static let maximumInterval = Int(Int32.max)

    private struct State {
        var isAssociated = false
        var updateRate: Int?
        var isCancelled = false
        /// When the intervals began.
        var origin: Duration = .zero
        var pending: (event: IoValueEvent, due: Duration)?
        /// Runs while a value is pending.
        var timer: Deadline?

        mutating func discardPending() {
            pending = nil
            timer?.cancel()
            timer = nil
        }
    }

    private let communicationManager: CommunicationManager
    private let ioSourceId: CoatyUUID
    /// Whether the source's values are raw bytes.
    public let isRaw: Bool
    private let strategy: IoSourceBackpressureStrategy
    private let timeline: Timeline
    private let failures = DoublingCounter()
    private let state = Mutex(State())
    private let subscription = Mutex<Subscription?>(nil)

    /// Creates the publisher of a source, which is copied at this moment.
    ///
    /// - Parameters:
    ///   - ioSource: a source of one of the agent's IO nodes.
    ///   - communicationManager: publishes the values.
    ///   - clock: measures the intervals.
    public init(
        ioSource: IoSource,
        communicationManager: CommunicationManager,
        clock: some Clock<Duration> = ContinuousClock()
    ) {
        self.communicationManager = communicationManager
        ioSourceId = ioSource.objectId
        isRaw = ioSource.useRawIoValues ?? false
        strategy = ioSource.updateStrategy ?? .Default
        timeline = Timeline(clock)
        let observation = communicationManager.subscribe(permanentlyToIoStateOf: ioSourceId) { [weak self] in
            self?.take($0)
        }
        subscription.withLock { $0 = observation }
    }

    deinit { cancel() }

    /// Publishes a value of the source now or later, or discards it.
    ///
    /// - Throws: ``CommunicationError/incompatibleIoValue`` if the value is of another source, or raw although the
    ///   source uses JSON, or vice versa; ``CommunicationError/queueFull(publications:bytes:)``. If a pending value
    ///   can't be published later, that is logged.
    @discardableResult
    public func publish(_ event: IoValueEvent) throws(CommunicationError) -> Outcome {
        guard event.ioSourceId == ioSourceId, event.isRaw == isRaw else { throw .incompatibleIoValue }
        let outcome: Outcome? = state.withLock { state in
            guard state.isAssociated, !state.isCancelled else { return .discarded }
            guard let updateRate = state.updateRate, updateRate > 0, strategy != .None else { return nil }
            let now = timeline.now()
            let interval = Duration.milliseconds(min(updateRate, Self.maximumInterval))
            let due =
                strategy == .Throttle ? now + interval : now + interval - (now - state.origin).remainder(by: interval)
            // A pending value that is replaced keeps its due time, except with the strategy Throttle.
            state.pending = (event, strategy == .Throttle ? due : state.pending?.due ?? due)
            if state.timer == nil { state.timer = timer(until: due) }
            return .pending
        }
        if let outcome { return outcome }
        return try communicationManager.publishIoValue(event).map(Outcome.published) ?? .discarded
    }

    /// Publishes the bytes of a value, depending on the source: a JSON text, which is sent unchanged, or raw bytes.
    ///
    /// - Throws: ``PayloadError/malformed(_:)`` if the text is not JSON;
    ///   ``CommunicationError/queueFull(publications:bytes:)``.
    @discardableResult
    public func publish(bytes: [UInt8]) throws -> Outcome {
        try publish(IoValueEvent(bytes, isRaw: isRaw, ioSourceId: ioSourceId))
    }

    /// Discards a pending value, and all values that are published from now on.
    public func cancel() {
        state.withLock { state in
            state.isCancelled = true
            state.discardPending()
        }
        subscription.withLock { $0.take() }?.cancel()
    }

    private func take(_ event: IoStateEvent) {
        state.withLock { state in
            guard event.hasAssociations != state.isAssociated || event.updateRate != state.updateRate else { return }
            state.isAssociated = event.hasAssociations
            state.updateRate = event.updateRate
            state.origin = timeline.now()
            state.discardPending()
        }
    }

    private func timer(until due: Duration) -> Deadline {
        Deadline(after: max(.zero, due - timeline.now()), on: timeline.clock) { [weak self] in self?.publishIfDue() }
    }

    /// Publishes the pending value if it is due, or sets the timer again.
    private func publishIfDue() {
        state.withLock { state in
            // The timer of a discarded or replaced value may still fire.
            guard let pending = state.pending else { return state.timer = nil }
            guard pending.due <= timeline.now() else { return state.timer = timer(until: pending.due) }
            (state.pending, state.timer) = (nil, nil)
            // Under the lock, so that a newer value does not overtake this one. Publishing only queues the value.
            do throws(CommunicationError) {
                _ = try communicationManager.publishIoValue(pending.event)
            } catch {
                if let count = failures.increment() {
                    communicationManager.logger.warning(
                        "an IO value could not be published",
                        metadata: ["source": "\(ioSourceId)", "error": "\(error)", "lost so far": "\(count)"]
                    )
                }
            }
        }
    }
}

/// A type-erased clock: its instants are durations since it was wrapped.
private struct Timeline: Sendable {
    let clock: any Clock<Duration>
    let now: @Sendable () -> Duration

    init(_ clock: some Clock<Duration>) {
        let origin = clock.now
        self.clock = clock
        now = { origin.duration(to: clock.now) }
    }
}

extension Duration {
    /// Returns the remainder of dividing a duration by an interval.
    fileprivate func remainder(by interval: Duration) -> Duration {
        Duration(attoseconds: attoseconds % interval.attoseconds)
    }
}
