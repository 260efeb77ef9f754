import Coaty
import DequeModule
import HTTPServer
import Synchronization

/// The outbound queue of one connection. Replies come first; subscriptions and requests then share the rest round-robin.
///
/// Frames that the client has not read yet stay here, within the bounds of each subscription, and not in the connection's own
/// queue. Snapshots and replays are read in turns on the threads of the pool, without the lock; everything else only moves what
/// is ready.
final class OutboundQueue: Job {
    /// Maximum number of queued replies. A client that requires more without reading is disconnected.
    static let maximumReplies = 1024
    /// Maximum bytes of queued replies, with the same consequence. A single reply may be larger.
    static let maximumReplyBytes = 1 << 20
    /// Maximum bytes of queued events for one client.
    static let maximumQueuedBytes = 4 << 20
    /// Bytes that may be queued for one client even if the memory that all clients share is full.
    static let guaranteedBytes = 64 << 10
    /// Maximum bytes of queued responses for one client. Once it is reached, the request that receives a response ends.
    static let maximumResponseBytes = 16 << 20
    /// Number of throttled events of one subscription that are released at once.
    static let releaseBatch = 64
    /// The delay before throttled events are checked again if the client has not read the previous ones.
    static let recheckInterval = Duration.milliseconds(100)

    struct State {
        var replies: Deque<(frame: ServerFrame, id: String?)> = []
        var replyBytes = 0
        var queues: [UInt64: SubscriptionQueue] = [:]
        /// Serials of the subscriptions and requests with queued items, in round-robin order, except those in `replaying`.
        var ready: Deque<UInt64> = []
        /// Serials of the subscriptions with items of a snapshot or replay, in round-robin order. They come after `ready`.
        var replaying: Deque<UInt64> = []
        /// Serials of the subscriptions whose snapshot or replay is to be read, in round-robin order. May hold closed ones.
        var unread: Deque<UInt64> = []
        /// Serials of the subscriptions that may have throttled events to release.
        var releasing: Deque<UInt64> = []
        /// Whether the connection had no room for a frame, and ``OutboundQueue/pump()`` was not called since.
        var isFull = false
        var isClosed = false
        /// Bytes of events in all queues, including events that throttling holds back.
        var bytes = 0
        /// Bytes of responses in all queues.
        var responseBytes = 0
        var lastSerial: UInt64 = 0
        /// Events handed to the connection since it opened.
        var delivered = 0
        /// Events dropped since the connection opened.
        var dropped = 0
        /// Why the connection ends after the queued replies; nil while it stays open.
        var finishing: ConnectionEnd?
        /// The requests that the client may answer; nil if it can't answer over this connection.
        var rights: AnswerRights?

        /// Takes the source of the next subscription whose snapshot or replay is to be read.
        mutating func takeSource() -> SubscriptionReading? {
            while let serial = unread.popFirst() {
                if let reading = queues[serial]?.takeSource() { return reading }
            }
            return nil
        }

        mutating func noteDelivered(_ item: QueuedItem) {
            guard item.isEvent else { return }
            delivered += 1
            if let request = item.request { rights?.insert(request) }
        }

        /// Puts a queue first in its round-robin order, because the connection had no room for its frame.
        mutating func prepend(_ queue: SubscriptionQueue) {
            if queue.isBehind {
                replaying.prepend(queue.subscription.serial)
            } else {
                ready.prepend(queue.subscription.serial)
            }
        }

        /// Puts a queue last in its round-robin order.
        mutating func append(_ queue: SubscriptionQueue) {
            if queue.isBehind {
                replaying.append(queue.subscription.serial)
            } else {
                ready.append(queue.subscription.serial)
            }
        }

        /// Whether a new event may be written at once, because nothing that comes first is queued.
        var isIdle: Bool { !isFull && !isClosed && replies.isEmpty && ready.isEmpty }
    }

    /// Not urgent: many clients that resume at once must not hold up live events.
    let ticket = JobTicket(isUrgent: false)
    private let transport: any FrameTransport
    let memory: QueueMemory
    let workers: WorkerPool
    /// Whether the connection ends with its first subscription or request.
    private let hasOneSubscription: Bool
    /// Called in a new task after a subscription or request has ended without ``close(_:)``.
    private let onEnd: @Sendable (ClientSubscription) -> Void
    let state = Mutex(State())

    /// - Parameters:
    ///   - memory: counts the queued bytes for the client.
    ///   - workers: read snapshots and replays.
    ///   - hasOneSubscription: whether the connection ends with its first subscription or request.
    ///   - onEnd: called in a new task after a subscription or request has ended without ``close(_:)``.
    init(
        _ transport: any FrameTransport,
        memory: QueueMemory,
        workers: WorkerPool,
        hasOneSubscription: Bool,
        onEnd: @escaping @Sendable (ClientSubscription) -> Void = { _ in }
    ) {
        self.transport = transport
        self.memory = memory
        self.workers = workers
        self.hasOneSubscription = hasOneSubscription
        self.onEnd = onEnd
    }

    // MARK: - Replies

    /// Queues a reply to a frame of the client. Closes the connection if too many replies are queued.
    ///
    /// - Parameter id: the id in the client's frame; nil if it could not be read.
    func reply(_ frame: ServerFrame, id: String?) {
        let isOverLimit = state.withLock { state in
            guard !state.isClosed else { return false }
            let bytes = state.replyBytes + frame.members.count
            guard state.replies.isEmpty || state.replies.count < Self.maximumReplies && bytes <= Self.maximumReplyBytes
            else { return true }
            queueReply(frame, id, &state)
            write(&state)
            return false
        }
        if isOverLimit {
            close()
            transport.abort()
        }
    }

    private func queueReply(_ frame: ServerFrame, _ id: String?, _ state: inout State) {
        state.replies.append((frame, id))
        state.replyBytes += frame.members.count
    }

    // MARK: - Subscriptions and requests

    /// Opens a queue for a subscription or request.
    ///
    /// - Parameters:
    ///   - id: the client's id; nil on a connection with a single subscription or request.
    ///   - wanted: the observation; nil for a request.
    ///   - view: what the client may see of the events; nil for all of them.
    ///   - isHeld: whether nothing is delivered before ``begin(_:_:)``.
    func open(
        id: String?,
        options: SubscriptionOptions = SubscriptionOptions(),
        wanted: Observation? = nil,
        view: AccessView? = nil,
        isHeld: Bool = true
    ) -> ClientSubscription {
        state.withLock { state in
            state.lastSerial += 1
            let serial = state.lastSerial
            let subscription = ClientSubscription(
                serial: serial,
                id: id,
                options: options,
                wanted: wanted,
                view: view,
                outbound: self
            )
            if !state.isClosed { state.queues[serial] = SubscriptionQueue(subscription, isHeld: isHeld) }
            return subscription
        }
    }

    /// Returns whether frames of a subscription or request can still be queued or delivered.
    func isOpen(_ subscription: ClientSubscription) -> Bool { state.withLock { $0.queues[subscription.serial] != nil } }

    /// The state of a subscription or request when it was closed.
    enum Closing {
        /// It had already ended.
        case over
        /// It had not begun, so that the client has not received `ok`.
        case held
        /// The client was sent `ok`.
        case begun
    }

    /// Closes a subscription or request and discards its queue. No more of its frames are delivered.
    @discardableResult
    func close(_ subscription: ClientSubscription) -> Closing {
        state.withLock { state in close(subscription, &state) }
    }

    private func close(_ subscription: ClientSubscription, _ state: inout State) -> Closing {
        guard let queue = state.queues.removeValue(forKey: subscription.serial) else { return .over }
        count(queue, -queue.bytes, &state)
        if queue.isReady {
            state.ready.removeAll { $0 == subscription.serial }
            state.replaying.removeAll { $0 == subscription.serial }
        }
        return queue.isHeld ? .held : .begun
    }

    /// Replies `ok` to the client, and then delivers gap, snapshot, replay and queued events.
    func begin(_ subscription: ClientSubscription, _ start: SubscriptionStart = SubscriptionStart()) {
        state.withLock { state in
            guard state.queues[subscription.serial] != nil else { return }
            queueReply(.ok(start.cursor), subscription.id, &state)
            writeReplies(&state)
            change(subscription, &state) { queue, _, _ in queue.begin(start) }
            write(&state)
        }
    }

    /// Ends a subscription or request after its queued items.
    ///
    /// - Parameter isFiltered: whether there were responses that the client must not see.
    func end(_ subscription: ClientSubscription, _ reason: ServerFrame.EndReason, isFiltered: Bool = false) {
        change(subscription) { queue, _, _ in queue.finish(reason, isFiltered: isFiltered) }
    }

    /// Closes a subscription that can't begin or continue, and sends the client an `error` frame.
    func refuse(_ subscription: ClientSubscription, _ problem: Problem) {
        state.withLock { state in
            guard close(subscription, &state) != .over else { return }
            if hasOneSubscription { state.finishing = .refused(status: problem.status) }
            queueReply(.error(problem), subscription.id, &state)
            write(&state)
        }
        Task { onEnd(subscription) }
    }

    /// Delivers an item, or queues it if it can't be written at once. Applies throttling and the overflow policy.
    ///
    /// - Parameter view: what the client may see, as the item was judged. If the view has changed since, a gap is queued instead.
    func append(_ item: QueuedItem, to subscription: ClientSubscription, seenBy view: AccessView?) {
        state.withLock { state in
            guard state.queues[subscription.serial] != nil, state.queues[subscription.serial]?.end == nil else {
                return
            }
            let item = subscription.currentView == view ? item : .gap(nil, nil)
            guard state.queues[subscription.serial]?.throttle != nil else {
                return deliver(item, to: subscription, &state)
            }
            var passing: QueuedItem?
            change(subscription, &state) { queue, _, _ in passing = queue.throttle?.take(item, at: .now) }
            if let passing { deliver(passing, to: subscription, &state) }
            scheduleRelease(subscription.serial, &state)
        }
    }

    /// Queues a response to a request.
    ///
    /// - Returns: whether there is room for another response; if not, the caller must end the request.
    func append(response frame: ServerFrame, to subscription: ClientSubscription) -> Bool {
        state.withLock { state in
            change(subscription, &state) { queue, _, _ in queue.append(response: frame) }
            write(&state)
            return !state.isClosed && state.responseBytes < Self.maximumResponseBytes
                && (memory.hasRoom || state.responseBytes < Self.guaranteedBytes)
        }
    }

    /// Writes an item if nothing else is queued; otherwise queues it.
    func deliver(_ item: QueuedItem, to subscription: ClientSubscription, _ state: inout State) {
        if state.isIdle, state.queues[subscription.serial]?.isBehind == false {
            switch transport.offer(item.outbound(to: subscription)) {
            case .queued:
                state.noteDelivered(item)
                return
            case .full: state.isFull = true
            case .closed: return clear(&state)
            }
        }
        change(subscription, &state) { queue, others, room in queue.append(item, others: others, room: room) }
    }

    /// Changes the queue of a subscription or request, and writes as much as the connection takes.
    private func change(
        _ subscription: ClientSubscription,
        _ body: (inout SubscriptionQueue, _ others: Int, _ room: Int) -> Void
    ) {
        state.withLock { state in
            change(subscription, &state, body)
            write(&state)
        }
    }

    /// Changes the queue of a subscription or request, and keeps the counts and the round-robin order in step.
    ///
    /// - Parameter body: receives the queue, the bytes of events in the other queues, and the limit for all queues together.
    func change(
        _ subscription: ClientSubscription,
        _ state: inout State,
        _ body: (inout SubscriptionQueue, _ others: Int, _ room: Int) -> Void
    ) {
        guard var queue = state.queues.removeValue(forKey: subscription.serial) else { return }
        let (before, dropped) = (queue.bytes, queue.droppedInAll)
        // If the shared memory is full, each client keeps its queued bytes but can't queue more than that.
        let room = memory.hasRoom ? Self.maximumQueuedBytes : max(state.bytes, Self.guaranteedBytes)
        body(&queue, state.bytes - before, room)
        state.dropped += queue.droppedInAll - dropped
        count(queue, queue.bytes - before, &state)
        if !queue.isReady, !queue.isHeld, queue.isWritable {
            queue.isReady = true
            state.append(queue)
        }
        awaitTurn(&queue, &state)
        state.queues[subscription.serial] = queue
    }

    /// Notes that the source of a queue is to be read, if it is.
    private func awaitTurn(_ queue: inout SubscriptionQueue, _ state: inout State) {
        guard queue.needsReading, !queue.isAwaitingTurn else { return }
        queue.isAwaitingTurn = true
        state.unread.append(queue.subscription.serial)
        workers.schedule(self)
    }

    // MARK: - Access

    /// Notes from now on which requests are delivered, so that the client may answer them.
    func note(deliveriesIn rights: AnswerRights) { state.withLock { $0.rights = rights } }

    /// Changes what the client may see of a subscription. Discards the queued events, which the old view
    /// allowed, and reports a gap of unknown length.
    func change(_ view: AccessView?, of subscription: ClientSubscription) {
        state.withLock { state in
            subscription.change(view)
            change(subscription, &state) { queue, _, _ in queue.discardQueued() }
            write(&state)
        }
    }

    // MARK: - Counts

    /// The counts of one connection.
    struct Statistics {
        /// Events handed to the connection since it opened.
        let delivered: Int
        /// Events dropped since the connection opened.
        let dropped: Int
        let subscriptions: [SubscriptionStatistics]
    }

    var statistics: Statistics {
        state.withLock { state in
            Statistics(
                delivered: state.delivered,
                dropped: state.dropped,
                subscriptions: state.queues.values.compactMap(SubscriptionStatistics.init)
            )
        }
    }

    // MARK: - Writing

    /// Continues writing. Called when the connection has room again.
    func pump() {
        state.withLock { state in
            state.isFull = false
            write(&state)
        }
    }

    /// Discards all queues, and ends the connection.
    func abort() {
        close()
        transport.abort()
    }

    /// Closes all subscriptions and requests and discards all queues. Called when the connection has closed or is about to.
    func close() { state.withLock { state in clear(&state) } }

    private func clear(_ state: inout State) {
        memory.add(-state.bytes - state.responseBytes)
        state = State(isClosed: true, lastSerial: state.lastSerial, delivered: state.delivered, dropped: state.dropped)
    }

    /// Adds a change in a queue's size to the counts of the connection and of the shared memory.
    private func count(_ queue: SubscriptionQueue, _ bytes: Int, _ state: inout State) {
        if queue.holdsResponses { state.responseBytes += bytes } else { state.bytes += bytes }
        memory.add(bytes)
    }

    /// Writes queued frames until the connection is full.
    func write(_ state: inout State) {
        while !state.isFull, !state.isClosed {
            if !state.replies.isEmpty {
                writeReplies(&state)
            } else if let serial = state.ready.popFirst() ?? state.replaying.popFirst() {
                guard writeNext(of: serial, &state) else { return }
            } else {
                return
            }
        }
    }

    private func writeReplies(_ state: inout State) {
        while !state.isFull, !state.isClosed, let (frame, id) = state.replies.first {
            guard offer(OutboundFrame(frame, id: id), &state) else { return }
            state.replies.removeFirst()
            state.replyBytes -= frame.members.count
            if let end = state.finishing, state.replies.isEmpty { transport.finish(end) }
        }
    }

    /// Writes one item of a queue, and puts the queue last in its round-robin order.
    ///
    /// - Returns: whether the connection takes more frames.
    private func writeNext(of serial: UInt64, _ state: inout State) -> Bool {
        guard var queue = state.queues.removeValue(forKey: serial) else { return true }
        let subscription = queue.subscription
        let before = queue.bytes
        guard let item = queue.pop() else {
            queue.isReady = false
            if !queue.isBehind, let reason = queue.end {
                count(queue, -before, &state)
                // No other reply is queued here, because replies are written first.
                queueReply(.done(reason, isFiltered: queue.isFiltered), subscription.id, &state)
                if hasOneSubscription { state.finishing = .done(reason) }
                Task { onEnd(subscription) }
                return true
            }
            awaitTurn(&queue, &state)
            state.queues[serial] = queue
            return true
        }
        let isWritten = offer(item.outbound(to: subscription), &state)
        guard !state.isClosed else { return false }
        if !isWritten { queue.putBack(item) }
        if isWritten { state.noteDelivered(item) }
        count(queue, queue.bytes - before, &state)
        awaitTurn(&queue, &state)
        if isWritten { state.append(queue) } else { state.prepend(queue) }
        state.queues[serial] = queue
        return isWritten
    }

    /// Returns whether the connection has taken the frame.
    private func offer(_ frame: OutboundFrame, _ state: inout State) -> Bool {
        switch transport.offer(frame) {
        case .queued: return true
        case .full: state.isFull = true
        case .closed: clear(&state)
        }
        return false
    }
}
