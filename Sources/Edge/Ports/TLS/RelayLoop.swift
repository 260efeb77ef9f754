import Base
import CEpoll
import Glibc
import Synchronization

/// Creates a descriptor for epoll; -1 and `errno` if that fails.
func epollDescriptor() -> Int32 { epoll_create1(Int32(EPOLL_CLOEXEC)) }

/// The loop of one thread of the relay. A connection stays on its thread, because OpenSSL allows only one thread at a
/// time.
///
/// Level-triggered. Relaying connections are served before handshakes, so that many new clients do not delay existing
/// connections.
final class RelayLoop {
    private let thread: RelayThread
    private let poller: Int32
    private let wake: Int32
    private var connections: [UInt64: RelayedConnection] = [:]
    /// The connections with a deadline.
    private var timed: Set<UInt64> = []
    /// The ids of connections whose protocol is not known, the oldest first. May contain decided or removed ones.
    private var undecided: [UInt64] = []
    private var undecidedCount = 0
    private var lingeringCount = 0
    /// Connections to advance without an event.
    private var ready: [UInt64] = []
    private var handshakes: [UInt64] = []
    private var lastID: UInt64 = 0
    private var stopDeadline: ContinuousClock.Instant?
    private var isExhausted = false
    private let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: RelayedConnection.pieceSize, alignment: 16)

    /// Interval of the checks of deadlines, in milliseconds.
    private static let tick: Int32 = 200
    /// The id of the pipe that wakes the thread.
    private static let wakeID: UInt64 = 0

    init(_ thread: RelayThread, poller: Int32, wake: Int32) {
        self.thread = thread
        self.poller = poller
        self.wake = wake
        var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: Self.wakeID))
        epoll_ctl(poller, EPOLL_CTL_ADD, wake, &event)
    }

    deinit { scratch.deallocate() }

    func run() {
        var events = Array(repeating: epoll_event(), count: 256)
        while !isOver {
            let count = epoll_wait(poller, &events, Int32(events.count), timeout)
            var isAwake = false
            let queued = ready
            ready = []
            for event in events.prefix(Int(max(count, 0))) {
                if event.data.u64 == Self.wakeID {
                    isAwake = true
                } else {
                    handle(event)
                }
            }
            for id in queued { if let connection = connections[id] { advance(connection) } }
            for id in handshakes.prefix(TLSRelay.handshakesPerTurn) {
                guard let connection = connections[id] else { continue }
                connection.isQueued = false
                advance(connection)
            }
            handshakes.removeFirst(min(TLSRelay.handshakesPerTurn, handshakes.count))
            if isAwake { takeArrivals() }
            endLate()
        }
        connections = [:]
    }

    private var isOver: Bool {
        guard let stopDeadline else { return false }
        return connections.count == lingeringCount || .now >= stopDeadline
    }

    private var timeout: Int32 {
        if !ready.isEmpty || !handshakes.isEmpty { return 0 }
        if stopDeadline != nil { return 10 }
        return timed.isEmpty ? -1 : Self.tick
    }

    // MARK: - Connections

    private func takeArrivals() {
        withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { buffer in
            while read(wake, buffer.baseAddress, buffer.count) > 0 {}
        }
        let (arrivals, isStopping) = thread.takeArrivals()
        for arrival in arrivals { add(arrival) }
        guard isStopping, stopDeadline == nil else { return }
        stopDeadline = .now + TLSRelay.stopTimeout
        for connection in connections.values where connection.isUndecided { remove(connection) }
    }

    private func add(_ arrival: RelayThread.Arrival) {
        while undecidedCount >= thread.maximumHandshakes, !undecided.isEmpty {
            if let oldest = connections[undecided.removeFirst()], oldest.isUndecided { remove(oldest, .evicted) }
        }
        var on: Int32 = 1
        setsockopt(arrival.descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        guard let ssl = thread.certificates.context.makeConnection(arrival.descriptor) else {
            close(arrival.descriptor)
            thread.failures.count(.noResources)
            return
        }
        lastID += 1
        let connection = RelayedConnection(
            id: lastID,
            outer: arrival.descriptor,
            peer: arrival.peer,
            ssl: ssl,
            flushTimeout: thread.flushTimeout
        )
        connection.deadline = .now + thread.handshakeTimeout
        connections[connection.id] = connection
        timed.insert(connection.id)
        undecided.append(connection.id)
        undecidedCount += 1
        // The ids of decided connections must not accumulate.
        if undecided.count > 2 * undecidedCount + 64 {
            undecided.removeAll { connections[$0]?.isUndecided != true }
        }
        connection.isQueued = true
        handshakes.append(connection.id)
    }

    private func handle(_ event: epoll_event) {
        guard let connection = connections[event.data.u64 >> 1] else { return }
        if connection.phase == .handshaking {
            guard !connection.isQueued else { return }
            connection.isQueued = true
            // It is watched again when its turn has come.
            unwatchOuter(connection)
            handshakes.append(connection.id)
            return
        }
        let isOuter = event.data.u64 & 1 == 0
        if !isOuter, event.events & (EPOLLRDHUP.rawValue | EPOLLHUP.rawValue) != 0 { connection.endOutward() }
        advance(connection)
        // The client has reset a connection while its server does not read.
        if isOuter, event.events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0, connections[connection.id] != nil,
            connection.phase == .relaying || connection.phase == .flushing,
            connection.outerWants & EPOLLIN.rawValue == 0
        {
            remove(connection)
        }
    }

    private func advance(_ connection: RelayedConnection) {
        let wasLingering = connection.phase == .lingering
        switch connection.advance(scratch) {
        case .wait: break
        case .again: ready.append(connection.id)
        case .plainText:
            remove(connection, .plainText)
            thread.handlers.refusePlainText(connection.releaseOuter())
            return
        case .decided(let peek):
            serve(connection, peek)
            return
        case .over:
            remove(connection, connection.failure)
            return
        }
        if connection.phase == .lingering, !wasLingering {
            guard lingeringCount < TLSRelay.maximumLingering else { return remove(connection) }
            lingeringCount += 1
            connection.isCountedAsLingering = true
        }
        if connection.deadline != nil { timed.insert(connection.id) }
        watch(connection)
    }

    /// Passes a connection to the server of its protocol.
    private func serve(_ connection: RelayedConnection, _ peek: ProtocolPeek) {
        timed.remove(connection.id)
        guard let end = connection.connect() else {
            if !isExhausted {
                thread.logger.error("cannot relay a TLS connection", metadata: ["error": "\(errorText(errno))"])
            }
            isExhausted = true
            return remove(connection, .noResources)
        }
        thread.served.add(1, ordering: .relaxed)
        undecidedCount -= 1
        isExhausted = false
        boundSocket(connection.outer, isWebSocket: peek == .webSocket)
        let origin = ConnectionOrigin(peer: connection.peer, isEncrypted: true, certificate: connection.certificate)
        connection.origin = origin
        thread.handlers.serve(peek, end, origin)
        ready.append(connection.id)
    }

    /// Limits the kernel's send buffer: the server cannot drop old events among these bytes. The socket pair buffers as
    /// many bytes again.
    private func boundSocket(_ descriptor: Int32, isWebSocket: Bool) {
        var unsent: Int32 = 64 << 10
        let length = socklen_t(MemoryLayout<Int32>.size)
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, &unsent, length)
        guard !isWebSocket else { return }
        var milliseconds = Int32(clamping: max(1, thread.userTimeout) * 1000)
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, length)
    }

    /// Removes a connection. Its descriptors are closed together with the object.
    ///
    /// - Parameter failure: the failure to count if the connection was not yet passed to a server; nil if the gateway
    ///   stops.
    private func remove(_ connection: RelayedConnection, _ failure: HandshakeFailure? = nil) {
        unwatchOuter(connection)
        if connection.watchedInner != nil { epoll_ctl(poller, EPOLL_CTL_DEL, connection.inner, nil) }
        if connection.isUndecided {
            undecidedCount -= 1
            if let failure { thread.failures.count(failure) }
        }
        if connection.isCountedAsLingering { lingeringCount -= 1 }
        timed.remove(connection.id)
        connections[connection.id] = nil
    }

    private func endLate() {
        guard !timed.isEmpty else { return }
        let now = ContinuousClock.now
        for id in timed {
            guard let connection = connections[id], let deadline = connection.deadline, deadline <= now else {
                continue
            }
            if connection.isResetWhenLate { connection.discard() }
            remove(connection, .timeout)
        }
    }

    // MARK: - Descriptors

    private func watch(_ connection: RelayedConnection) {
        // Always watched, so that a reset is noticed.
        let outer = connection.outerWants
        if connection.watchedOuter != outer {
            set(connection.outer, outer, connection.id << 1, isNew: connection.watchedOuter == nil)
            connection.watchedOuter = outer
        }
        guard connection.inner >= 0 else {
            // The descriptor is closed, which ends the watch.
            connection.watchedInner = nil
            return
        }
        let inner = connection.innerWants == 0 ? nil : connection.innerWants
        guard connection.watchedInner != inner else { return }
        if let inner {
            set(connection.inner, inner, connection.id << 1 | 1, isNew: connection.watchedInner == nil)
        } else {
            // The server may have closed its end, which is already recorded and would be reported repeatedly.
            epoll_ctl(poller, EPOLL_CTL_DEL, connection.inner, nil)
        }
        connection.watchedInner = inner
    }

    private func set(_ descriptor: Int32, _ events: UInt32, _ id: UInt64, isNew: Bool) {
        var event = epoll_event(events: events, data: epoll_data_t(u64: id))
        epoll_ctl(poller, isNew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event)
    }

    private func unwatchOuter(_ connection: RelayedConnection) {
        guard connection.watchedOuter != nil else { return }
        epoll_ctl(poller, EPOLL_CTL_DEL, connection.outer, nil)
        connection.watchedOuter = nil
    }
}
