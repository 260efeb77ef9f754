package import Access
package import Base
import Coaty
import DequeModule
package import ProblemDetails
import Synchronization

/// The outbound queue of one connection. Replies come first; subscriptions and requests then share the rest
/// round-robin.
///
/// Frames that the client has not read yet stay here, within the bounds of each subscription, and not in the queue of
/// the connection. Snapshots and replays are read in turns on the threads of the pool, without the lock; all other work
/// only moves items that are ready.
package final class OutboundQueue: PacedQueue, Job {
    /// Maximum number of bytes of queued replies for each reply that may be queued. A client that leaves more unread is
    /// disconnected. A single reply may be larger.
    static let bytesPerReply = 1 << 10
    /// Maximum number of bytes of queued replies if the memory limit of the client or of all clients is reached.
    static let minimumReplyBytes = 16 << 10
    /// Number of throttled events of one subscription that are released together.
    static let releaseBatch = 64
    /// The delay before throttled events are checked again if the client has not read the previous ones.
    static let recheckInterval = Duration.milliseconds(100)

    /// Not urgent: many clients that resume at the same time must not delay live events.
    package let ticket = JobTicket(isUrgent: false)
    private let transport: any FrameTransport
    let workers: WorkerPool
    /// Whether the connection ends with its first subscription or request.
    private let hasOneSubscription: Bool
    /// Called after a subscription or request was answered with an error.
    private let onRefusal: @Sendable (ClientSubscription, Problem) -> Void
    let state: Mutex<State>

    /// - Parameters:
    ///   - account: the account of the client.
    ///   - workers: read snapshots and replays.
    ///   - hasOneSubscription: whether the connection ends with its first subscription or request.
    ///   - onRefusal: called after a subscription or request was answered with an error.
    package init(
        _ transport: any FrameTransport,
        account: ClientAccount,
        workers: WorkerPool,
        hasOneSubscription: Bool,
        onRefusal: @escaping @Sendable (ClientSubscription, Problem) -> Void = { _, _ in }
    ) {
        self.transport = transport
        state = Mutex(State(account))
        self.workers = workers
        self.hasOneSubscription = hasOneSubscription
        self.onRefusal = onRefusal
    }

    // MARK: - Replies

    /// Queues a reply to a frame of the client. Closes the connection if too many replies are queued.
    ///
    /// - Parameter id: the id in the client's frame; nil if it could not be read.
    package func reply(_ frame: ServerFrame, id: String?) {
        let isOverLimit = state.withLock { state in
            guard !state.isClosed else { return false }
            let bytes = state.replyBytes + frame.members.count
            let maximum = state.account.queuedReplies
            let limit = state.memory.hasRoom ? maximum * Self.bytesPerReply : Self.minimumReplyBytes
            guard state.replies.isEmpty || state.replies.count < maximum && bytes <= limit else {
                return true
            }
            queueReply(frame, id, &state)
            write(&state)
            return false
        }
        if isOverLimit {
            close(.limited)
            transport.abort()
        }
    }

    private func queueReply(_ frame: ServerFrame, _ id: String?, _ state: inout State) {
        // A reply can't be refused, but the number and the bytes of replies are bounded.
        let charge = state.memory.chargeAnyway(frame.members.count + QueuedEvent.overhead)
        state.replies.append((frame, id, charge))
        state.replyBytes += frame.members.count
    }

    // MARK: - Subscriptions and requests

    /// Opens a queue for a subscription or request.
    ///
    /// - Parameters:
    ///   - id: the client's id; nil on a connection with a single subscription or request.
    ///   - wanted: the observation; nil for a request.
    ///   - view: the part of the events that the client may see; nil for all of them.
    ///   - outcome: counts how the subscription or request ends for the client.
    ///   - isHeld: whether nothing is delivered before ``begin(_:_:)``.
    package func open(
        id: String?,
        options: SubscriptionOptions = SubscriptionOptions(),
        wanted: Observation? = nil,
        view: AccessView? = nil,
        outcome: ActivityOutcome? = nil,
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
                outcome: outcome,
                outbound: self
            )
            if !state.isClosed { state.add(SubscriptionQueue(subscription, isHeld: isHeld)) }
            return subscription
        }
    }

    /// Returns whether a subscription or request has an id.
    package func isOpen(_ id: String) -> Bool { state.withLock { $0.serials[WireName(id)] != nil } }

    /// The number of subscriptions and requests.
    package var openCount: Int { state.withLock(\.queues.count) }

    /// The state of a subscription or request when it was closed.
    package enum Closing {
        /// It had already ended.
        case over
        /// It had not begun, so that the client has not received `ok`.
        case held
        /// The client was sent `ok`.
        case begun
    }

    /// Closes a subscription or request of the client, and discards its queue. No more of its frames are delivered.
    package func close(id: String, isRequest: Bool) -> (closing: Closing, subscription: ClientSubscription?) {
        state.withLock { state in
            guard let subscription = state.subscription(id), (subscription.wanted == nil) == isRequest else {
                return (.over, nil)
            }
            return (close(subscription, &state), subscription)
        }
    }

    /// Closes a subscription or request that the client no longer wants.
    @discardableResult
    package func close(_ subscription: ClientSubscription) -> Closing { state.withLock { close(subscription, &$0) } }

    private func close(_ subscription: ClientSubscription, _ state: inout State) -> Closing {
        let closing = remove(subscription, &state)
        if closing != .over { subscription.outcome?.set(closing == .held ? .abandoned : .done) }
        return closing
    }

    private func remove(_ subscription: ClientSubscription, _ state: inout State) -> Closing {
        guard let queue = state.removeQueue(subscription) else { return .over }
        subscription.leave()
        count(queue, -queue.bytes, &state)
        if queue.isReady {
            state.ready.removeAll { $0 == subscription.serial }
            state.replaying.removeAll { $0 == subscription.serial }
        }
        return queue.isHeld ? .held : .begun
    }

    /// Replies `ok` to the client, and then delivers gap, snapshot, replay and queued events.
    package func begin(_ subscription: ClientSubscription, _ start: SubscriptionStart = SubscriptionStart()) {
        state.withLock { state in
            guard state.queues[subscription.serial] != nil else { return }
            queueReply(.ok(start.cursor), subscription.id, &state)
            writeReplies(&state)
            change(subscription, &state) { queue, _ in queue.begin(start) }
            write(&state)
        }
    }

    /// Ends a subscription or request after its queued items.
    ///
    /// - Parameter isFiltered: whether there were responses that the client must not see.
    package func end(_ subscription: ClientSubscription, _ reason: ServerFrame.EndReason, isFiltered: Bool = false) {
        change(subscription) { queue, _ in queue.finish(reason, isFiltered: isFiltered) }
    }

    /// Closes a subscription that can't begin or continue, and sends the client an `error` frame.
    package func refuse(_ subscription: ClientSubscription, _ problem: Problem) {
        let isRefused = state.withLock { state in
            guard remove(subscription, &state) != .over else { return false }
            subscription.outcome?.set(OperationCounts.Outcome(problem))
            if hasOneSubscription { state.finishing = ConnectionEnd(problem) }
            queueReply(.error(problem), subscription.id, &state)
            write(&state)
            return true
        }
        if isRefused { onRefusal(subscription, problem) }
        // On a task, because it is called by feeds and activities, with their locks.
        Task { subscription.release() }
    }

    /// Delivers an item, or queues it if it can't be written immediately. Applies throttling and the overflow policy.
    ///
    /// - Parameter view: the view for which the item was selected. If the view has changed since, a gap is queued
    ///   instead.
    func append(_ item: QueuedItem, to subscription: ClientSubscription, seenBy view: AccessView?) {
        state.withLock { state in
            guard let condition = state.condition(of: subscription), !condition.hasEnded else { return }
            var item = subscription.currentView == view ? item : .gap(nil, nil)
            if case .leftOut = item { state.leftOut += 1 }
            guard condition.isThrottled, item.charge(to: state.memory) else {
                return deliver(item, to: subscription, condition, &state)
            }
            var passing: QueuedItem?
            change(subscription, &state) { queue, room in
                passing = queue.throttle?.take(item, at: .now, charging: room.memory)
            }
            if let passing { deliver(passing, to: subscription, condition, &state) }
            scheduleRelease(subscription.serial, &state)
        }
    }

    /// Queues a response to a request, unless there is no memory for it.
    ///
    /// - Returns: whether it is queued, and there is space for another response; if not, the caller must end the
    ///   request.
    package func append(response frame: ServerFrame, to subscription: ClientSubscription) -> Bool {
        state.withLock { state in
            guard let charge = state.memory.charge(frame.members.count + QueuedEvent.overhead) else { return false }
            change(subscription, &state) { queue, _ in queue.append(response: frame, charge) }
            write(&state)
            return !state.isClosed && state.responseBytes < state.account.responseBytes
        }
    }

    /// Writes an item if nothing else is queued; otherwise queues it. If there is no memory for it, writes a gap.
    func deliver(
        _ item: QueuedItem,
        to subscription: ClientSubscription,
        _ condition: State.Condition,
        _ state: inout State
    ) {
        var item = item
        if state.isIdle, !condition.isBehind, !hasToWait(&state), item.charge(to: state.memory) {
            guard let rest = offer(item, to: subscription, &state), !state.isClosed else { return }
            item = rest
        }
        change(subscription, &state) { queue, room in queue.append(item, room) }
        write(&state)
    }

    /// Changes the queue of a subscription or request, and writes as many frames as the connection accepts.
    private func change(
        _ subscription: ClientSubscription,
        _ body: (inout SubscriptionQueue, QueueRoom) -> Void
    ) {
        state.withLock { state in
            change(subscription, &state, body)
            write(&state)
        }
    }

    /// Changes the queue of a subscription or request, and keeps the counts and the round-robin order in step.
    ///
    /// - Parameter body: receives the queue and its free space.
    func change(
        _ subscription: ClientSubscription,
        _ state: inout State,
        _ body: (inout SubscriptionQueue, QueueRoom) -> Void
    ) {
        guard var queue = state.queues.removeValue(forKey: subscription.serial) else { return }
        let (before, dropped) = (queue.bytes, queue.droppedInAll)
        let limit = state.account.queuedBytes
        body(&queue, QueueRoom(others: state.bytes - before, limit: limit, memory: state.memory))
        state.dropped += queue.droppedInAll - dropped
        count(queue, queue.bytes - before, &state)
        if !queue.isReady, !queue.isHeld, queue.isWritable {
            queue.isReady = true
            state.append(queue)
        }
        awaitTurn(&queue, &state)
        state.queues[subscription.serial] = queue
    }

    /// Schedules the reading of a queue's source, if it has one to read.
    private func awaitTurn(_ queue: inout SubscriptionQueue, _ state: inout State) {
        guard queue.needsReading, !queue.isAwaitingTurn else { return }
        queue.isAwaitingTurn = true
        state.unread.append(queue.subscription.serial)
        workers.schedule(self)
    }

    // MARK: - Access

    /// Records from now on which requests are delivered, so that the client may answer them.
    package func note(deliveriesIn rights: AnswerRights) { state.withLock { $0.rights = rights } }

    /// Changes the view of a subscription. Discards the queued events, which the old view allowed, and reports a gap of
    /// unknown length.
    func change(_ view: AccessView?, of subscription: ClientSubscription) {
        state.withLock { state in
            subscription.change(view)
            change(subscription, &state) { queue, _ in queue.discardQueued() }
            write(&state)
        }
    }

    // MARK: - Memory

    /// Discards everything that is queued for a subscription whose snapshot is not yet read, because the client has no
    /// memory left for it, and reports a gap of unknown length.
    func discardSnapshot(of subscription: ClientSubscription) {
        let account = state.withLock { state -> ClientAccount? in
            guard state.queues[subscription.serial]?.isBehind ?? false else { return nil }
            change(subscription, &state) { queue, _ in queue.discardQueued() }
            write(&state)
            return state.account
        }
        account?.countRefusal(.memory, .own)
    }

    /// The account of the client.
    package var account: ClientAccount { state.withLock(\.account) }

    /// Counts the bytes that the connection uses.
    package var memory: MemoryAccount { state.withLock(\.memory) }

    /// Charges another account from now on, since the client has authenticated.
    package func move(to account: ClientAccount) { state.withLock { $0.move(to: account) } }

    // MARK: - Counts

    /// The counts of one connection.
    package struct Statistics {
        /// Events handed to the connection since it opened.
        package let delivered: Int
        /// Events dropped since the connection opened.
        package let dropped: Int
        /// Gaps because the client's filter was too expensive, since the connection opened.
        let leftOut: Int
        /// Bytes of queued events and responses, including those that throttling holds back.
        package let queuedBytes: Int
        package let subscriptions: [SubscriptionStatistics]
        /// The number of pending requests.
        package let requests: Int
    }

    var statistics: Statistics {
        state.withLock { state in
            let subscriptions = state.queues.values.compactMap(SubscriptionStatistics.init)
            return Statistics(
                delivered: state.delivered,
                dropped: state.dropped,
                leftOut: state.leftOut,
                queuedBytes: state.bytes + state.responseBytes,
                subscriptions: subscriptions,
                requests: state.queues.count - subscriptions.count
            )
        }
    }

    // MARK: - Writing

    /// Continues writing. Called when the connection has space again.
    package func pump() {
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

    /// Discards all queues, and ends the connection because an operator has disconnected the client.
    package func disconnect() {
        close()
        transport.finish(.disconnected)
    }

    /// Closes all subscriptions and requests and discards all queues. Called when the connection has closed or is about
    /// to.
    ///
    /// - Parameter outcome: the outcome of all of them; nil if it depends on whether they have begun.
    package func close(_ outcome: OperationCounts.Outcome? = nil) { state.withLock { state in clear(&state, outcome) } }

    private func clear(_ state: inout State, _ outcome: OperationCounts.Outcome? = nil) {
        for queue in state.queues.values { queue.abandon(outcome) }
        var closed = State(state.account)
        closed.isClosed = true
        (closed.lastSerial, closed.delivered) = (state.lastSerial, state.delivered)
        (closed.dropped, closed.leftOut) = (state.dropped, state.leftOut)
        state = closed
    }

    /// Adds a change of a queue's size to the counts of the connection.
    private func count(_ queue: SubscriptionQueue, _ bytes: Int, _ state: inout State) {
        if queue.holdsResponses { state.responseBytes += bytes } else { state.bytes += bytes }
    }

    /// Writes queued frames until the connection is full.
    func write(_ state: inout State) {
        while !state.isFull, !state.isClosed {
            if !state.replies.isEmpty {
                writeReplies(&state)
            } else if state.ready.isEmpty && state.replaying.isEmpty {
                if state.waiting == .counted { state.waiting = .no }
                return
            } else if hasToWait(&state) {
                return
            } else if let serial = state.ready.popFirst() ?? state.replaying.popFirst() {
                guard writeNext(of: serial, &state) else { return }
            }
        }
    }

    private func writeReplies(_ state: inout State) {
        while !state.isFull, !state.isClosed, let (frame, id, charge) = state.replies.first {
            guard offer(OutboundFrame(frame, id: id, charge), &state) else { return }
            state.replies.removeFirst()
            state.replyBytes -= frame.members.count
            if let end = state.finishing, state.replies.isEmpty { transport.finish(end) }
        }
    }

    /// Writes one item of a queue, and puts the queue last in its round-robin order.
    ///
    /// - Returns: whether the connection accepts more frames.
    private func writeNext(of serial: UInt64, _ state: inout State) -> Bool {
        guard var queue = state.queues.removeValue(forKey: serial) else { return true }
        let subscription = queue.subscription
        let before = queue.bytes
        guard let item = queue.pop() else {
            queue.isReady = false
            if !queue.isBehind, let reason = queue.end {
                count(queue, -before, &state)
                state.forget(subscription)
                subscription.leave()
                subscription.outcome?.set(OperationCounts.Outcome(reason))
                // No other reply is queued here, because replies are written first.
                queueReply(.done(reason, isFiltered: queue.isFiltered), subscription.id, &state)
                if hasOneSubscription { state.finishing = .done(reason) }
                Task { subscription.release() }
                return true
            }
            awaitTurn(&queue, &state)
            state.queues[serial] = queue
            return true
        }
        let rest = offer(item, to: subscription, &state)
        let isWritten = rest == nil
        guard !state.isClosed else {
            queue.abandon()
            return false
        }
        if let rest { queue.putBack(rest) } else { queue.endSourceIfDelivered() }
        count(queue, queue.bytes - before, &state)
        awaitTurn(&queue, &state)
        if isWritten { state.append(queue) } else { state.prepend(queue) }
        state.queues[serial] = queue
        return isWritten
    }

    /// Offers an item to the connection.
    ///
    /// - Returns: the part that the connection has not accepted; nil if it has accepted all of it.
    private func offer(_ item: QueuedItem, to subscription: ClientSubscription, _ state: inout State) -> QueuedItem? {
        state.permitAnswers(to: item)
        switch item.outbound(to: subscription) {
        case .frame(let frame):
            guard offer(frame, &state) else { return item }
            state.delivered += item.events
            return nil
        case .batch(var batch):
            let (number, answer) = transport.offer(batch)
            let bytes = batch.removeFirst(number)
            state.spend(bytes)
            state.delivered += number
            note(answer, &state)
            return batch.frames.isEmpty ? nil : .objects(batch)
        }
    }

    /// Returns whether the connection has accepted the frame.
    private func offer(_ frame: OutboundFrame, _ state: inout State) -> Bool {
        let answer = transport.offer(frame)
        if answer == .queued { state.spend(frame.count) }
        note(answer, &state)
        return answer == .queued
    }

    private func note(_ answer: FrameOffer, _ state: inout State) {
        switch answer {
        case .queued: break
        case .full: state.isFull = true
        case .closed: clear(&state)
        }
    }
}
