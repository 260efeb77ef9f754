import Access
import Base
import Coaty
import Network
package import ProblemDetails
import Synchronization

/// Delivers each event, in order, to all subscriptions to the same observation, and adds it to the replay buffer.
///
/// Callers that add an event, a subscription or a status only append it to the feed's intake. The feed's turns, on the
/// threads of the pool and one at a time, apply the intake in its order: they evaluate filters and views, build texts
/// and fill the outbound queues.
///
/// There are two lock orders: object registry, feed's intake, replay buffer; and outbound queue, subscription's view,
/// connection. No thread takes a lock of one chain while it holds one of the other. The locks of pools are leaves. A
/// turn's own lock, `turns`, is never contended; turns take the other locks while they hold it. No filter, parsing or
/// text building for clients runs under a lock that the broker's thread or an I/O thread takes.
final class Feed: Job {
    /// Returns the objects to deliver first, and the feed's cursor at that moment: `now` must be called while no change
    /// can be appended to the feed.
    typealias Snapshot = @Sendable (_ now: () -> FeedCursor) -> ObjectSnapshot?

    private enum Status {
        /// The broker has not yet acknowledged the subscription.
        case opening
        case standing
        case offline
        case refused
    }

    /// Milliseconds that an event may arrive here later than at another gateway, if a client resumes at once.
    private static let retryDelay: Int64 = 500

    /// Minimum time between two gaps for events that could not be read.
    static let invalidInterval = Duration.seconds(1)

    /// State that only turns use.
    private struct Turns {
        var status = Status.opening
        /// The position of the last record that was applied.
        var position: UInt64 = 0
        var audience = Audience()
        /// Subscriptions that are queued until the broker's acknowledgement, with the snapshot at their arrival.
        var pending: [(join: FeedIntake.Join, snapshot: ObjectSnapshot?)] = []
        /// By client; nil for subscriptions that are not charged to a client.
        var slowLanes: [ObjectIdentifier?: SlowLane] = [:]
        /// Nil before the first subscription with the option `latest`: to know the object of an event, it must be read.
        var latest: LatestEvents?
        /// The record that is being delivered, which the slow lanes receive afterwards.
        var undelivered: EventRecord?
    }

    let ticket = JobTicket()
    /// Distinguishes the cursors of this feed from those of other feeds, including earlier feeds for the same
    /// observation.
    private let epoch = UInt64.random(in: .min ... .max)
    private let isResumable: Bool
    private let replayBuffer: ReplayBuffer
    /// Nil if clients can't resume at other gateways.
    private let places: FeedPlaces?
    private let workers: WorkerPool
    private let counts: FeedCounts
    private let intake = Mutex(FeedIntake())
    private let turns = Mutex(Turns())

    /// - Parameters:
    ///   - places: the places of the feed's records at other gateways; nil if clients can't resume there.
    ///   - isMirror: whether the feed is kept only for the clients of other gateways.
    ///   - expectsRetained: whether the broker keeps messages for new subscriptions.
    init(
        isResumable: Bool,
        memory: ReplayBuffer,
        workers: WorkerPool,
        counts: FeedCounts,
        places: FeedPlaces? = nil,
        isMirror: Bool = false,
        expectsRetained: Bool = false
    ) {
        self.isResumable = isResumable
        self.workers = workers
        self.counts = counts
        self.places = places
        replayBuffer = memory
        if expectsRetained { intake.withLock { $0.retained = RetainedTopics() } }
        if let places { memory.open(epoch, places, isMirror: isMirror) }
    }

    /// Changes whether the feed is kept only for the clients of other gateways.
    func setMirror(_ isMirror: Bool) { replayBuffer.setMirror(epoch, isMirror) }

    /// Returns the hash of an event; nil if the feed needs none.
    func hash(of event: some CommunicationEvent, name: String? = nil) -> UInt64? {
        places.map { $0.cluster.events.hash(event, name: name) }
    }

    private func cursor(_ position: UInt64) -> FeedCursor { FeedCursor(epoch: epoch, position: position) }

    // MARK: - Upstream

    /// Keeps a closure that cancels an upstream subscription. It is called when the feed ends, or now if it has ended.
    func hold(_ onClose: @escaping @Sendable () -> Void) {
        let isOver = intake.withLock { intake in
            guard !intake.isOver else { return true }
            intake.onClose.append(onClose)
            return false
        }
        if isOver { onClose() }
    }

    /// Applies the status of the upstream subscription.
    func update(_ status: SubscriptionStatus) {
        intake.withLock { intake in
            guard !intake.isOver else { return }
            intake.isRefused = status == .refused
            if status == .offline {
                append(&intake, nil) { EventRecord(.gap, cursor: $0) }
                counts.note(.offline)
                intake.retained?.reset()
            }
            if status == .standing { intake.retained?.acknowledged(at: .now) }
            if let places, status != .standing || !intake.isStanding {
                replayBuffer.beginSection(epoch, at: status == .standing ? places.cluster.now : nil)
            }
            intake.isStanding = status == .standing
            intake.append(.status(status))
        }
        workers.schedule(self)
    }

    /// Delivers a gap to every subscription: events may have been missed.
    func noteGap() {
        intake.withLock { intake in
            // Consecutive gaps become one.
            guard !intake.isOver, !intake.endsWithGap else {
                if let places, intake.isStanding {
                    replayBuffer.beginSection(epoch, at: places.cluster.now)
                }
                return
            }
            append(&intake, nil) { EventRecord(.gap, cursor: $0) }
            counts.note(.missed)
        }
        workers.schedule(self)
    }

    /// Reports an event that could not be read, by a gap with the number of such events to the subscriptions that may see
    /// all events of the feed. There is at most one such gap in ``invalidInterval``, so that an agent can't flood them.
    func noteInvalid() {
        let isAppended = intake.withLock { intake in
            guard !intake.isOver else { return false }
            intake.invalid += 1
            guard intake.invalidDeadline == nil else { return false }
            let elapsed = intake.lastInvalid.map { $0.duration(to: .now) } ?? Self.invalidInterval
            guard elapsed < Self.invalidInterval else {
                appendInvalid(&intake)
                return true
            }
            intake.invalidDeadline = Deadline(after: Self.invalidInterval - elapsed) { [weak self] in
                self?.reportInvalid()
            }
            return false
        }
        if isAppended { workers.schedule(self) }
    }

    private func reportInvalid() {
        let deadline = intake.withLock { intake in
            guard !intake.isOver else { return Deadline?.none }
            appendInvalid(&intake)
            return intake.invalidDeadline.take()
        }
        withExtendedLifetime(deadline) {}
        workers.schedule(self)
    }

    private func appendInvalid(_ intake: inout FeedIntake) {
        let count = intake.invalid
        intake.invalid = 0
        intake.lastInvalid = .now
        append(&intake, nil) { EventRecord(.invalid(count), cursor: $0) }
        counts.note(.invalid)
    }

    /// Delivers an event to every subscription. Returns immediately, however many subscriptions there are.
    func deliver(_ event: PendingEvent) {
        deliver(event.hash, event.retention) { EventRecord(event, cursor: $0, receivers: $1) }
    }

    /// Delivers an event that is already created.
    func deliver(_ event: ObservedEvent) {
        deliver(nil, nil) { cursor, _ in EventRecord(.event(event), cursor: cursor) }
    }

    private func deliver(
        _ hash: UInt64?,
        _ retention: (topic: WireName, isRetained: Bool)?,
        _ record: (FeedCursor?, RetainedTopics.Receivers?) -> EventRecord
    ) {
        let (isTrimmed, waitingSince) = intake.withLock { intake -> (Bool, ContinuousClock.Instant?) in
            let receivers = retention.flatMap { topic, isRetained in
                let position = intake.position + 1
                return intake.retained?.note(topic, isRetained: isRetained, at: position, counts.backlogMemory)
            }
            let isTrimmed = !intake.isOver && append(&intake, hash) { record($0, receivers) }
            return (isTrimmed, intake.waitingSince)
        }
        if isTrimmed { counts.noteBacklog(waitingSince: waitingSince) }
        workers.schedule(self)
    }

    /// Appends a record.
    ///
    /// - Parameter hash: the hash of the event; nil for a gap, or if the feed needs none.
    /// - Returns: whether older records were dropped.
    @discardableResult
    private func append(_ intake: inout FeedIntake, _ hash: UInt64?, _ make: (FeedCursor?) -> EventRecord) -> Bool {
        intake.advance()
        let cursor = cursor(intake.position)
        let record: EventRecord
        if let places {
            record = replayBuffer.insert(at: cursor, hash, places, make)
        } else {
            record = make(isResumable ? cursor : nil)
            if isResumable { replayBuffer.insert(record, at: cursor) }
        }
        intake.append(.record(record, position: intake.position))
        return intake.trim(counts.backlogMemory)
    }

    /// Ends the feed and all its subscriptions, because there is nothing left to observe.
    ///
    /// - Parameter problem: the refusal for subscriptions that have not started.
    func end(_ problem: Problem = Problems.withdrawn) {
        let onClose = intake.withLock { intake in
            guard !intake.isOver else { return [@Sendable () -> Void]() }
            defer { intake.onClose = [] }
            intake.isOver = true
            intake.end = problem
            intake.append(.end(problem))
            return intake.onClose
        }
        close(onClose)
        workers.schedule(self)
    }

    /// Closes the feed when no subscriptions are left.
    func close() {
        let onClose = intake.withLock { intake in
            defer { intake.onClose = [] }
            if !intake.isOver { intake.removeAll() }
            intake.isOver = true
            return intake.onClose
        }
        close(onClose)
    }

    private func close(_ onClose: [@Sendable () -> Void]) {
        for cancel in onClose { cancel() }
        replayBuffer.close(epoch)
    }

    // MARK: - Retained messages

    /// Keeps the closure that requests the retained messages from the broker again.
    func setRetainedRequest(_ request: @escaping @Sendable () -> Void) {
        let isDue = intake.withLock { intake in
            guard !intake.isOver else { return false }
            intake.requestRetained = request
            return intake.mustRequestRetained
        }
        if isDue { request() }
    }

    /// Requests the retained messages for a subscription that was added to a feed in use.
    func requestRetained() {
        let request = intake.withLock { intake in
            if intake.requestRetained == nil { intake.mustRequestRetained = true }
            return intake.requestRetained
        }
        request?()
    }

    // MARK: - Subscriptions

    /// Adds a subscription. When the broker has acknowledged the feed, the subscription receives `ok`, the events since
    /// its cursor, and then each new event.
    ///
    /// - Parameter snapshot: returns the objects to deliver first if the subscription can't resume. Called on a worker.
    func add(_ subscription: ClientSubscription, snapshot: Snapshot? = nil) {
        add(subscription) { intake in
            let place = places.flatMap { replayBuffer.place(at: cursor(intake.position), $0) }
            return .init(subscription: subscription, arrival: intake.position, snapshot: snapshot, place: place)
        }
    }

    private func add(_ subscription: ClientSubscription, _ join: (FeedIntake) -> FeedIntake.Join) {
        let end = intake.withLock { intake -> Problem? in
            // A subscription that is added just after the broker's refusal is refused for the same reason.
            guard !intake.isOver else { return intake.isRefused ? Problems.subscriptionRefused : intake.end }
            let position = intake.position
            intake.retained?.expect(behind: position, at: .now)
            intake.append(.join(join(intake)))
            return nil
        }
        if let end { subscription.refuse(end) } else { workers.schedule(self) }
    }

    /// Adds a subscription again later, because the event of its cursor may not have arrived yet.
    private func retry(_ join: FeedIntake.Join) {
        let subscription = join.subscription
        var join = join
        join.isRetry = true
        let later = Deadline(after: .milliseconds(Self.retryDelay)) { [weak self, join] in
            guard let self else { return subscription.refuse(Problems.withdrawn) }
            add(subscription) { _ in join }
        }
        subscription.hold([later])
    }

    /// Removes a subscription. Its queue must be closed already, so that it receives no more events.
    func remove(_ subscription: ClientSubscription) {
        subscription.leave()
        intake.withLock { $0.leaves.append(subscription) }
        workers.schedule(self)
    }

    // MARK: - Turns

    func turn() -> TurnEnd {
        let limit = TurnLimit()
        return turns.withLock { turns in
            while true {
                let (leaves, entry, waitingSince) = intake.withLock { $0.next(withEntry: !turns.audience.isDelivering) }
                for subscription in leaves { remove(subscription, &turns) }
                if let waitingSince { counts.noteWait(since: waitingSince) }
                if !turns.audience.isDelivering { moveBack(&turns) }
                if let entry {
                    apply(entry, &turns)
                } else if !turns.audience.isDelivering {
                    return .idle
                }
                for subscription in turns.audience.deliver(until: limit) {
                    subscription.refuse(Problems.filterTooExpensive)
                    remove(subscription, &turns)
                }
                if !turns.audience.isDelivering {
                    appendToLanes(&turns)
                    moveExpensive(&turns)
                }
                if limit.isOver { return .again }
            }
        }
    }

    private func remove(_ subscription: ClientSubscription, _ turns: inout Turns) {
        if turns.audience.remove(subscription) { return }
        turns.pending.removeAll { $0.join.subscription === subscription }
        turns.slowLanes[subscription.work.map(ObjectIdentifier.init)]?.remove(subscription)
    }

    /// Moves the subscriptions that must be held back to the slow lanes of their clients, after the last record.
    private func moveExpensive(_ turns: inout Turns) {
        for departure in turns.audience.removeExpensive(behind: turns.position) {
            let client = departure.subscription.work
            let key = client.map(ObjectIdentifier.init)
            let lane = turns.slowLanes[key] ?? slowLane(of: departure.subscription)
            turns.slowLanes[key] = lane
            lane.add(departure)
        }
    }

    private func slowLane(of subscription: ClientSubscription) -> SlowLane {
        SlowLane(of: subscription, workers: workers, counts: counts) { [weak self] in
            if let self { workers.schedule(self) }
        }
    }

    /// Passes the record to the slow lanes, after it was delivered to all other subscriptions.
    private func appendToLanes(_ turns: inout Turns) {
        guard let record = turns.undelivered.take() else { return }
        for lane in turns.slowLanes.values { lane.append(record, at: turns.position) }
    }

    /// Moves the subscriptions back that need not be held back any longer.
    private func moveBack(_ turns: inout Turns) {
        for (key, lane) in turns.slowLanes where lane.hasRecovered {
            guard let returning = lane.removeRecovered(behind: turns.position) else { continue }
            turns.slowLanes[key] = nil
            for departure in returning { turns.audience.insert(departure.subscription, behind: departure.position) }
        }
    }

    private func apply(_ entry: FeedIntake.Entry, _ turns: inout Turns) {
        switch entry {
        case .record(let record, let position):
            turns.position = position
            turns.latest?.keep(record, at: position)
            turns.audience.begin(record, at: position)
            if !turns.slowLanes.isEmpty { turns.undelivered = record }
        case .join(let join): apply(join, &turns)
        case .status(let status): apply(status, &turns)
        case .end(let problem):
            for (join, _) in turns.pending { join.subscription.refuse(problem) }
            for subscription in turns.audience.subscriptions { subscription.end(.withdrawn) }
            turns.pending = []
            turns.audience.removeAll()
            for lane in turns.slowLanes.values { lane.append(.end(problem)) }
        }
    }

    private func apply(_ status: SubscriptionStatus, _ turns: inout Turns) {
        switch status {
        case .standing: turns.status = .standing
        case .offline: turns.status = .offline
        case .refused:
            turns.status = .refused
            // After a reconnect, a broker may refuse a subscription that it granted before.
            for subscription in turns.audience.subscriptions { subscription.refuse(Problems.subscriptionRefused) }
            turns.audience.removeAll()
            for lane in turns.slowLanes.values { lane.append(.status(.refused)) }
        }
        let pending = turns.pending
        turns.pending = []
        for (join, snapshot) in pending { admit(join, { snapshot }, &turns) }
    }

    private func apply(_ join: FeedIntake.Join, _ turns: inout Turns) {
        guard !join.subscription.hasLeft else { return }
        guard turns.status == .opening else {
            return admit(join, { join.snapshot?({ self.cursor(self.intake.withLock(\.position)) }) }, &turns)
        }
        let snapshot = join.snapshot?({ cursor(intake.withLock(\.position)) })
        turns.pending.append((join, snapshot))
    }

    /// Starts or refuses a subscription.
    ///
    /// - Parameter snapshot: returns the objects to deliver first if the subscription can't resume.
    private func admit(
        _ join: FeedIntake.Join,
        _ snapshot: () -> ObjectSnapshot?,
        _ turns: inout Turns
    ) {
        let subscription = join.subscription
        subscription.begin(behind: join.arrival)
        if subscription.options.latest { keepLatest(&turns) }
        if turns.status == .refused {
            subscription.refuse(Problems.subscriptionRefused)
            return
        }
        let now = cursor(turns.position)
        let arrival = FeedCursor(epoch: epoch, position: join.arrival, place: join.place)
        var first = now
        var start = SubscriptionStart()
        if let since = subscription.options.since {
            let resumption = resumption(behind: since, now, join)
            guard case .decided(let known, let outcome) = resumption else { return retry(join) }
            counts.note(outcome)
            if outcome == .gap || outcome == .unknown { start.snapshot = snapshot() }
            if start.snapshot != nil {
                start.gap = .gap(nil, nil)
            } else if subscription.options.latest, outcome == .gap || outcome == .unknown {
                subscription.begin(behind: join.arrival)
                start.gap = .gap(nil, arrival)
                start.latest = latest(for: subscription, upTo: join.arrival, turns)
                start.replay = replay(behind: arrival, now)
            } else {
                // After an unknown cursor, only later events: otherwise any cursor text would give access to the replay
                // buffer.
                let resumption = known ?? arrival
                subscription.begin(behind: resumption.position)
                if known == nil { requestRetained() }
                if known == nil { start.gap = .gap(nil, resumption) }
                start.replay = replay(behind: resumption, now)
                // Behind a record that is queued, if the cursor is from another gateway.
                if resumption.position > now.position, known != nil { first = resumption }
            }
        } else {
            start.snapshot = snapshot()
            // A subscription that arrives while the session is offline may miss events from its start on.
            let hasGap = turns.status == .offline && arrival == now
            // With a snapshot, no cursor yet: a client that resumed after it would miss the snapshot.
            let cursor = isResumable && start.snapshot == nil ? arrival : nil
            if hasGap { start.gap = .gap(nil, cursor) } else { start.cursor = cursor }
            // Events delivered before the broker acknowledged the feed.
            if start.snapshot == nil { start.replay = replay(behind: arrival, now) }
            if subscription.options.latest {
                start.latest = latest(for: subscription, upTo: join.arrival, turns)
                if start.latest == nil, start.gap == nil { (start.gap, start.cursor) = (.gap(nil, cursor), nil) }
            }
        }
        if let snapshot = start.snapshot {
            // The snapshot may be newer than the last record that was applied. Events that occur while it is being
            // delivered follow it.
            first = FeedCursor(epoch: epoch, position: max(now.position, snapshot.cursor.position))
            start.replay = Replay(behind: snapshot.cursor, upTo: first.position, in: replayBuffer)
        }
        turns.audience.insert(subscription, behind: first.position)
        subscription.begin(start)
    }

    private enum Resumption {
        /// Resume after a cursor of this feed; nil after an unknown cursor.
        case decided(FeedCursor?, FeedCounts.Replay)
        /// The event of the cursor may not have arrived yet.
        case later
    }

    /// - Parameter now: the last record that was applied.
    private func resumption(behind since: ClientCursor, _ now: FeedCursor, _ join: FeedIntake.Join) -> Resumption {
        let content: CursorContent?
        let own: FeedCursor
        switch since {
        case .plain(let cursor): (content, own) = (nil, cursor)
        case .sealed(let sealed):
            guard let opened = places?.open(sealed) else { return .decided(nil, .unknown) }
            (content, own) = (opened, FeedCursor(epoch: opened.epoch, position: opened.position))
        }
        if own.epoch == epoch, own.position <= now.position {
            return .decided(own, replayBuffer.isComplete(behind: own) ? .complete : .gap)
        }
        guard own.epoch != epoch, let content, let cluster = places?.cluster,
            let time = cluster.localTime(of: content)
        else { return .decided(nil, .unknown) }
        let search = RecordTrail.Search(time: time, count: content.count, hash: content.hash)
        if let position = replayBuffer.position(epoch, search) {
            let own = cursor(position)
            return .decided(own, replayBuffer.isComplete(behind: own) ? .peer : .gap)
        }
        return content.count == 0 || join.isRetry || time < cluster.now - Self.retryDelay
            ? .decided(nil, .unknown) : .later
    }

    /// Keeps the last event of each object or IO source from now on, beginning with those that are kept for clients which
    /// resume.
    private func keepLatest(_ turns: inout Turns) {
        guard turns.latest == nil else { return }
        var latest = LatestEvents(counts.latestMemory)
        let end = turns.position
        var position = end - min(end, UInt64(LatestEvents.maximumSearched))
        while position < end {
            switch replayBuffer.next(behind: cursor(position), upTo: end) {
            case .record(let record):
                position += 1
                latest.keep(record, at: position)
            case .forgotten(_, let last): position = last
            case .nothing: position = end
            }
        }
        turns.latest = latest
    }

    /// Returns the last events of the objects or IO sources; nil if the client has no memory for them.
    private func latest(
        for subscription: ClientSubscription,
        upTo position: UInt64,
        _ turns: Turns
    ) -> LatestSnapshot? {
        let records = turns.latest?.records(upTo: position) ?? []
        let bytes = records.reduce(0) { $0 + $1.size }
        guard let charge = try? subscription.charged(bytes) else { return nil }
        return LatestSnapshot(records, charge: charge)
    }

    private func replay(behind cursor: FeedCursor, _ now: FeedCursor) -> Replay? {
        guard isResumable, cursor.position < now.position else { return nil }
        return Replay(behind: cursor, upTo: now.position, in: replayBuffer)
    }
}

extension Problems {
    package static let filterTooExpensive = Problem(
        type: typePrefix + "filter-too-expensive",
        title: "Filter too expensive",
        status: 422,
        detail: "The condition takes more steps than are allowed for one event or response."
    )
}
