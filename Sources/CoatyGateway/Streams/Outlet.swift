import Coaty
import DequeModule
import HTTPServer
import Synchronization

/// All that one client is told: answers to what it says, and the lanes of its subscriptions and requests, which take turns.
///
/// What the client does not read yet stays here, in the lanes' own bounds, and not in the connection's queue.
final class Outlet: Sendable {
    /// The most answers that wait for a client, and their bytes; one that asks for more without reading is cut off.
    static let maximumAnswers = 1024
    static let maximumAnswerBytes = 1 << 20
    /// The most bytes of events that wait for a client.
    static let maximumWaitingBytes = 4 << 20
    /// How many bytes may wait for a client also where all clients together have no room left.
    static let guaranteedBytes = 64 << 10
    /// The most bytes of responses that wait for a client; then a request ends.
    static let maximumResponseBytes = 16 << 20
    /// How much of what was said before is looked at in a turn, in which others wait, and of one lane before the next one
    /// gets its share: so many records or objects, or bytes of these in steps.
    static let turn = 64
    static let share = 8
    static let bytesPerStep = 4096
    /// When what throttling holds back is looked at again, where the client has not read what it let pass.
    private static let recheck = Duration.milliseconds(100)

    private struct State {
        var answers: Deque<(frame: StreamFrame, id: String?)> = []
        var answerBytes = 0
        var queues: [UInt64: LaneQueue] = [:]
        /// The lanes in which something waits, in their turns.
        var ready: Deque<UInt64> = []
        /// The same of those that are told what was said before, which come behind the others.
        var behind: Deque<UInt64> = []
        var isChoked = false
        /// Whether writing goes on by itself.
        var isScheduled = false
        var isClosed = false
        /// The bytes of events that wait in all lanes.
        var bytes = 0
        /// The bytes of responses that wait in all lanes.
        var responseBytes = 0
        var lastSerial: UInt64 = 0
        /// The events that were handed to the connection, and those that were lost, since it began.
        var told = 0
        var lost = 0
        /// Why the connection ends behind the answers.
        var finishing: StreamFrame.EndReason?

        /// Gives a lane that could not write its place back.
        mutating func prepend(_ queue: LaneQueue) {
            if queue.isBehind { behind.prepend(queue.lane.serial) } else { ready.prepend(queue.lane.serial) }
        }

        /// Gives a lane its place in the row.
        mutating func append(_ queue: LaneQueue) {
            if queue.isBehind { behind.append(queue.lane.serial) } else { ready.append(queue.lane.serial) }
        }

        /// Whether a frame may be written at once.
        var isIdle: Bool { !isChoked && !isClosed && answers.isEmpty && ready.isEmpty }
    }

    private let transport: any FrameTransport
    private let memory: WaitingMemory
    /// Whether the connection ends with its first lane.
    private let hasOneLane: Bool
    /// Told of lanes that have ended by themselves, on a task of its own.
    private let onEnd: @Sendable (Lane) -> Void
    private let state = Mutex(State())

    /// - Parameter memory: what all outlets share.
    init(
        _ transport: any FrameTransport,
        memory: WaitingMemory,
        hasOneLane: Bool,
        onEnd: @escaping @Sendable (Lane) -> Void = { _ in }
    ) {
        self.transport = transport
        self.memory = memory
        self.hasOneLane = hasOneLane
        self.onEnd = onEnd
    }

    // MARK: - Answers

    /// Answers what the client has said.
    func answer(_ frame: StreamFrame, id: String?) {
        let isTooMuch = state.withLock { state in
            guard !state.isClosed else { return false }
            let bytes = state.answerBytes + frame.members.count
            guard state.answers.isEmpty || state.answers.count < Self.maximumAnswers && bytes <= Self.maximumAnswerBytes
            else { return true }
            queue(frame, id, &state)
            write(&state)
            return false
        }
        if isTooMuch {
            close()
            transport.abort()
        }
    }

    private func queue(_ frame: StreamFrame, _ id: String?, _ state: inout State) {
        state.answers.append((frame, id))
        state.answerBytes += frame.members.count
    }

    // MARK: - Lanes

    /// Opens a lane.
    ///
    /// - Parameters:
    ///   - wanted: what is observed; nil for a request.
    ///   - isHeld: whether nothing is told of it before ``begin(_:_:)``.
    func open(
        id: String?,
        options: StreamOptions = StreamOptions(),
        wanted: StreamRequest? = nil,
        isHeld: Bool = true
    ) -> Lane {
        state.withLock { state in
            state.lastSerial += 1
            let lane = Lane(serial: state.lastSerial, id: id, options: options, wanted: wanted, outlet: self)
            if !state.isClosed { state.queues[lane.serial] = LaneQueue(lane, isHeld: isHeld) }
            return lane
        }
    }

    /// Whether something may still be told of a lane.
    func isOpen(_ lane: Lane) -> Bool { state.withLock { $0.queues[lane.serial] != nil } }

    /// What a lane was when it was closed.
    enum Closing {
        /// There is nothing to be told any more.
        case over
        /// Its client has not been told yet that it has begun.
        case held
        case begun
    }

    /// Closes a lane, of which nothing more is told.
    @discardableResult
    func close(_ lane: Lane) -> Closing {
        state.withLock { state in close(lane, &state) }
    }

    private func close(_ lane: Lane, _ state: inout State) -> Closing {
        guard let queue = state.queues.removeValue(forKey: lane.serial) else { return .over }
        count(queue, -queue.bytes, &state)
        if queue.isReady {
            state.ready.removeAll { $0 == lane.serial }
            state.behind.removeAll { $0 == lane.serial }
        }
        return queue.isHeld ? .held : .begun
    }

    /// Tells the client that a lane has begun, and then what there is.
    func begin(_ lane: Lane, _ beginning: LaneBeginning = LaneBeginning()) {
        state.withLock { state in
            guard state.queues[lane.serial] != nil else { return }
            queue(.ok(beginning.cursor), lane.id, &state)
            writeAnswers(&state)
            change(lane, &state) { queue, _, _ in queue.begin(beginning) }
            // Not here, where whoever lets the lane begin makes others wait.
            if !state.ready.isEmpty || !state.behind.isEmpty { schedule(&state) }
        }
    }

    /// Ends a lane behind what waits in it.
    func end(_ lane: Lane, _ reason: StreamFrame.EndReason) {
        change(lane) { queue, _, _ in queue.finish(reason) }
    }

    /// Answers a subscription that can't begin, or go on, and closes its lane.
    func refuse(_ lane: Lane, _ problem: Problem) {
        state.withLock { state in
            guard close(lane, &state) != .over else { return }
            if hasOneLane { state.finishing = .withdrawn }
            queue(.error(problem), lane.id, &state)
            write(&state)
        }
        Task { onEnd(lane) }
    }

    func append(_ item: LaneItem, to lane: Lane, _ shared: SharedFrame) {
        state.withLock { state in
            guard state.queues[lane.serial] != nil, state.queues[lane.serial]?.end == nil else { return }
            guard state.queues[lane.serial]?.throttle != nil else { return deliver(item, to: lane, shared, &state) }
            var passing: LaneItem?
            change(lane, &state) { queue, _, _ in passing = queue.throttle?.take(item, at: .now) }
            if let passing { deliver(passing, to: lane, shared, &state) }
            time(lane.serial, &state)
        }
    }

    /// Takes a response to a request.
    ///
    /// - Returns: whether there is room for more.
    func append(response frame: StreamFrame, to lane: Lane) -> Bool {
        state.withLock { state in
            change(lane, &state) { queue, _, _ in queue.append(response: frame) }
            write(&state)
            return !state.isClosed && state.responseBytes < Self.maximumResponseBytes
                && (memory.hasRoom || state.responseBytes < Self.guaranteedBytes)
        }
    }

    private func deliver(_ item: LaneItem, to lane: Lane, _ shared: SharedFrame?, _ state: inout State) {
        if state.isIdle, state.queues[lane.serial]?.isBehind == false {
            switch transport.offer(item.outbound(to: lane, shared)) {
            case .queued:
                if item.isEvent { state.told += 1 }
                return
            case .full: state.isChoked = true
            case .closed: return clear(&state)
            }
        }
        change(lane, &state) { queue, others, room in queue.append(item, others: others, room: room) }
    }

    /// Changes a lane's queue, and writes what can be written.
    private func change(_ lane: Lane, _ body: (inout LaneQueue, _ others: Int, _ room: Int) -> Void) {
        state.withLock { state in
            change(lane, &state, body)
            write(&state)
        }
    }

    private func change(
        _ lane: Lane,
        _ state: inout State,
        _ body: (inout LaneQueue, _ others: Int, _ room: Int) -> Void
    ) {
        guard var queue = state.queues.removeValue(forKey: lane.serial) else { return }
        let (before, lost) = (queue.bytes, queue.lostInAll)
        // Where all clients together are full, each keeps what waits for it, and no more.
        let room = memory.hasRoom ? Self.maximumWaitingBytes : max(state.bytes, Self.guaranteedBytes)
        body(&queue, state.bytes - before, room)
        state.lost += queue.lostInAll - lost
        count(queue, queue.bytes - before, &state)
        if !queue.isReady, !queue.isHeld, !queue.isEmpty || queue.end != nil {
            queue.isReady = true
            state.append(queue)
        }
        state.queues[lane.serial] = queue
    }

    // MARK: - Counts

    /// What an outlet has told, and how its subscriptions stand.
    struct Statistics {
        /// Since the connection began.
        let told: Int
        let lost: Int
        let subscriptions: [LaneStatistics]
    }

    var statistics: Statistics {
        state.withLock { state in
            Statistics(
                told: state.told,
                lost: state.lost,
                subscriptions: state.queues.values.compactMap(LaneStatistics.init)
            )
        }
    }

    // MARK: - Throttling

    /// Sees to it that what is held back passes when its time has come.
    private func time(_ serial: UInt64, _ state: inout State) {
        guard let queue = state.queues[serial], queue.deadline == nil, let next = queue.throttle?.next else { return }
        let wait = max(next - .now, state.isIdle ? .zero : Self.recheck)
        state.queues[serial]?.deadline = Deadline(after: wait) { [weak self] in self?.releaseThrottled(serial) }
    }

    private func releaseThrottled(_ serial: UInt64) {
        state.withLock { state in
            guard let lane = state.queues[serial]?.lane else { return }
            // The rest in a turn of its own: others wait for the deadlines, too.
            for _ in 0..<Self.turn where state.isIdle {
                var released: LaneItem?
                change(lane, &state) { queue, _, _ in released = queue.throttle?.release(at: .now) }
                guard let released else { break }
                deliver(released, to: lane, nil, &state)
            }
            state.queues[serial]?.deadline = nil
            time(serial, &state)
        }
    }

    // MARK: - Writing

    /// The connection has room again.
    func pump() {
        state.withLock { state in
            state.isChoked = false
            write(&state)
        }
    }

    /// The connection is gone, or is to go: nothing more is told.
    func close() { state.withLock { state in clear(&state) } }

    private func clear(_ state: inout State) {
        memory.add(-state.bytes - state.responseBytes)
        state = State(isClosed: true, lastSerial: state.lastSerial, told: state.told, lost: state.lost)
    }

    private func count(_ queue: LaneQueue, _ bytes: Int, _ state: inout State) {
        if queue.holdsResponses { state.responseBytes += bytes } else { state.bytes += bytes }
        memory.add(bytes)
    }

    /// Writes what waits, as far as the connection takes it.
    private func write(_ state: inout State) {
        var budget = Self.turn
        while !state.isChoked, !state.isClosed {
            if !state.answers.isEmpty {
                writeAnswers(&state)
            } else if let serial = state.ready.popFirst() {
                var none = 0
                guard writeNext(of: serial, &none, &state) else { return }
            } else if !state.behind.isEmpty {
                guard budget > 0, let serial = state.behind.popFirst() else { return schedule(&state) }
                var share = Self.share
                let goesOn = writeNext(of: serial, &share, &state)
                budget -= Self.share - share
                guard goesOn else { return }
            } else {
                return
            }
        }
    }

    /// Lets writing go on when others have had their turn.
    private func schedule(_ state: inout State) {
        guard !state.isScheduled else { return }
        state.isScheduled = true
        Task { [weak self] in
            self?.state.withLock { state in
                state.isScheduled = false
                self?.write(&state)
            }
        }
    }

    private func writeAnswers(_ state: inout State) {
        while !state.isChoked, !state.isClosed, let (frame, id) = state.answers.first {
            guard offer(OutboundFrame(content: .frame(frame), id: id), &state) else { return }
            state.answers.removeFirst()
            state.answerBytes -= frame.members.count
            if let reason = state.finishing, state.answers.isEmpty { transport.finish(reason) }
        }
    }

    /// Writes one item of a lane, which then goes to the end of the row.
    ///
    /// - Parameter budget: how much of what was said before may be looked at.
    private func writeNext(of serial: UInt64, _ budget: inout Int, _ state: inout State) -> Bool {
        guard var queue = state.queues.removeValue(forKey: serial) else { return true }
        let lane = queue.lane
        let (before, lost) = (queue.bytes, queue.lostInAll)
        let item = queue.pop(&budget)
        state.lost += queue.lostInAll - lost
        guard let item else {
            queue.isReady = queue.isBehind
            if queue.isBehind {
                state.append(queue)
            } else if let reason = queue.end {
                count(queue, -before, &state)
                // No other answer waits: those are written first.
                self.queue(.done(reason), lane.id, &state)
                if hasOneLane { state.finishing = reason }
                Task { onEnd(lane) }
                return true
            }
            state.queues[serial] = queue
            return true
        }
        let isWritten = offer(item.outbound(to: lane), &state)
        guard !state.isClosed else { return false }
        if !isWritten { queue.putBack(item) }
        if isWritten, item.isEvent { state.told += 1 }
        count(queue, queue.bytes - before, &state)
        if isWritten { state.append(queue) } else { state.prepend(queue) }
        state.queues[serial] = queue
        return isWritten
    }

    private func offer(_ frame: OutboundFrame, _ state: inout State) -> Bool {
        switch transport.offer(frame) {
        case .queued: return true
        case .full: state.isChoked = true
        case .closed: clear(&state)
        }
        return false
    }
}
