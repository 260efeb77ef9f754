import Dispatch
import Glibc
import Synchronization

/// Cuts the connections of clients that take too long to send a request, even if single bytes keep the connection from
/// being idle, and of those that make no progress during a request or a response.
///
/// libmicrohttpd limits only the time without progress, by one time for all connections. (It visits each connection
/// with another time whenever it waits for events.) This is the time for which idle connections are kept, which is too
/// long for the others. It does not report when the first byte of a request arrives, either: on a kept-alive
/// connection, the checks ask the kernel for it, and the time of the request begins with the check that notices it.
final class RequestDeadlines: Sendable {
    /// One open connection.
    final class Connection: Sendable {
        fileprivate let descriptor: Int32
        /// The IP address of the client; empty if it has none.
        let peer: String
        /// See ``HTTPRequestHead/connectionContext``.
        let context: (any Sendable & AnyObject)?
        /// When the body of the request must be complete, in milliseconds of `now()`; `Int.max` if none is expected,
        /// ``untimed`` while no byte of a further request is known to have arrived.
        private let deadline: Atomic<Int>
        /// Since when no request is being answered, in milliseconds of `now()`; `Int.max` while one is being answered.
        /// In the future for a new connection.
        private let idleSince: Atomic<Int>
        /// Whether it was cut in favour of a new connection. Written with the lock of `connections` held.
        fileprivate let isCut = Atomic(false)
        /// Whether libmicrohttpd sends a response.
        private let isSending = Atomic(false)
        /// The bytes that the client had not read at the last check, and when they last changed. Used by the checks, with
        /// the lock of `connections` held.
        nonisolated(unsafe) private var unread: (mark: UInt64, since: Int)?
        /// Maximum time to send a request, in milliseconds.
        private let timeout: Int
        private static let untimed = Int.max - 1
        /// The accuracy of the times in milliseconds: those of the kernel and of `now()` differ by some.
        private static let accuracy = 20
        /// See ``HTTPRequestHead/connectionState``. Invariant: only the thread of the connection uses it, while it
        /// reads a head.
        nonisolated(unsafe) var state: (any Sendable & AnyObject)?

        fileprivate init(
            descriptor: Int32,
            peer: String,
            context: (any Sendable & AnyObject)?,
            timeout: Int
        ) {
            self.descriptor = descriptor
            self.peer = peer
            self.context = context
            idleSince = Atomic(now() + RequestDeadlines.firstRequestTime)
            deadline = Atomic(now() + timeout)
            self.timeout = timeout
        }

        /// Called when the head of a request is complete.
        func requestBegins() {
            idleSince.store(.max, ordering: .relaxed)
            if deadline.load(ordering: .relaxed) == Self.untimed {
                // A check may have set it at this moment, which then counts.
                _ = deadline.compareExchange(
                    expected: Self.untimed,
                    desired: now() + timeout,
                    ordering: .relaxed
                )
            }
        }

        /// Called when the request is complete or no longer read.
        func answerBegins() { deadline.store(.max, ordering: .relaxed) }

        /// Called when the request is answered, but its body is still read, for at most `seconds`. The connection counts
        /// as idle: a new one may take its place.
        func lingeringBegins(seconds: Int) {
            deadline.store(now() + seconds * 1000, ordering: .relaxed)
            idleSince.store(now(), ordering: .relaxed)
        }

        /// Called when libmicrohttpd sends the response.
        func sendingBegins() { isSending.store(true, ordering: .relaxed) }

        /// Called when an answer is sent, and the next request may arrive.
        func answerEnds() {
            isSending.store(false, ordering: .relaxed)
            deadline.store(Self.untimed, ordering: .relaxed)
            idleSince.store(now(), ordering: .relaxed)
        }

        /// Nil while a request is being answered.
        fileprivate var idleStart: Int? {
            let time = idleSince.load(ordering: .relaxed)
            return time == .max ? nil : time
        }

        fileprivate func isLate(_ time: Int) -> Bool { deadline.load(ordering: .relaxed) <= time }

        /// Returns whether the client has made no progress for a time, in milliseconds, during a request or a response.
        fileprivate func hasStalled(for limit: Int, _ time: Int) -> Bool {
            if isSending.load(ordering: .relaxed) { return hasStalledReading(for: limit, time) }
            unread = nil
            let end = deadline.load(ordering: .relaxed)
            guard end != .max, let lastReception = lastReception(time) else { return false }
            if end == Self.untimed {
                noteReception(lastReception, time)
                return false
            }
            // After a pause of the process, the bytes may still be unread.
            return lastReception <= time - limit && !SocketProgress.hasUnreadBytes(descriptor)
        }

        /// Begins the time of a request if one of its bytes has arrived.
        private func noteReception(_ reception: Int, _ time: Int) {
            let since = idleSince.load(ordering: .relaxed)
            guard since < reception - Self.accuracy,
                deadline.compareExchange(expected: Self.untimed, desired: time + timeout, ordering: .relaxed).exchanged,
                idleSince.load(ordering: .relaxed) != since
            else { return }
            // The request was answered at this moment.
            _ = deadline.compareExchange(expected: time + timeout, desired: Self.untimed, ordering: .relaxed)
        }

        /// Returns when the last bytes of the client arrived, in milliseconds of `now()`; nil if it is not known.
        private func lastReception(_ time: Int) -> Int? {
            SocketProgress.silence(of: descriptor).map { time - $0 } ?? (context as? any ReceptionClock)?.lastReception
        }

        private func hasStalledReading(for limit: Int, _ time: Int) -> Bool {
            guard let mark = SocketProgress.unreadMark(of: descriptor) else {
                unread = nil
                return false
            }
            guard let unread, unread.mark == mark else {
                unread = (mark, time)
                return false
            }
            return unread.since <= time - limit
        }
    }

    private struct State {
        /// The open connections by descriptor.
        var open: [Int32: Connection] = [:]
        /// Idle connections with their start of idleness, the longest idle last. May contain connections that are no
        /// longer idle or open.
        var candidates: [(connection: Connection, idleSince: Int)] = []
        /// Number of cut connections that libmicrohttpd has not closed yet.
        var cutting = 0
    }

    /// Maximum number of cut connections that libmicrohttpd has not closed yet.
    static let maximumCutting = 32
    /// The time in which a new connection without a request does not count as idle, in milliseconds.
    private static let firstRequestTime = 1000
    /// Number of idle connections that are determined together, because all connections must be visited.
    private static let maximumCandidates = 64

    /// Invariant: a descriptor is used only with the lock held, and is removed from `open` before libmicrohttpd closes
    /// it. Therefore no other file has its number.
    private let connections = Mutex(State())
    private let timer = Mutex<(any DispatchSourceTimer)?>(nil)
    /// In seconds.
    private let requestTimeout: Int
    /// In seconds.
    private let connectionTimeout: Int

    init(_ configuration: HTTPServer.Configuration) {
        requestTimeout = max(1, configuration.requestTimeout)
        connectionTimeout = max(1, configuration.connectionTimeout)
    }

    /// Starts the checks for late requests and stalled clients.
    func start() {
        let milliseconds = max(1000, min(requestTimeout, connectionTimeout) * 1000 / 4)
        timer.withLock { timer in
            let source = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "HTTPServer.RequestDeadlines"))
            source.schedule(
                deadline: .now() + .milliseconds(milliseconds),
                repeating: .milliseconds(milliseconds),
                leeway: .milliseconds(milliseconds / 10)
            )
            source.setEventHandler { [weak self] in self?.cutLate() }
            source.activate()
            timer = source
        }
    }

    /// Stops the checks.
    func stop() {
        timer.withLock { timer in
            timer?.cancel()
            timer = nil
        }
    }

    /// Watches a connection until `remove`.
    func add(_ descriptor: Int32, peer: String, context: (any Sendable & AnyObject)?) -> Connection {
        let connection = Connection(
            descriptor: descriptor,
            peer: peer,
            context: context,
            timeout: requestTimeout * 1000
        )
        connections.withLock { $0.open[descriptor] = connection }
        return connection
    }

    /// Called when the connection's descriptor is about to be closed.
    ///
    /// - Returns: whether it was cut by ``cutLongestIdle()``.
    func remove(_ connection: Connection) -> Bool {
        connections.withLock { connections in
            connections.open[connection.descriptor] = nil
            let isCut = connection.isCut.load(ordering: .relaxed)
            if isCut { connections.cutting -= 1 }
            return isCut
        }
    }

    /// Cuts the connection that has been without a request longest.
    ///
    /// - Returns: whether there was one; false if too many are being cut.
    func cutLongestIdle() -> Bool {
        connections.withLock { connections in
            guard connections.cutting < Self.maximumCutting else { return false }
            for isRenewed in [false, true] {
                if isRenewed {
                    connections.candidates = Self.candidates(among: connections.open.values)
                }
                while let (connection, idleSince) = connections.candidates.popLast() {
                    guard connection.idleStart == idleSince, !connection.isCut.load(ordering: .relaxed),
                        connections.open[connection.descriptor] === connection
                    else { continue }
                    connection.isCut.store(true, ordering: .relaxed)
                    connections.cutting += 1
                    shutdown(connection.descriptor, Int32(SHUT_RDWR))
                    return true
                }
            }
            return false
        }
    }

    /// Returns the connections that have been idle longest, with the longest idle last.
    private static func candidates(
        among open: some Collection<Connection>
    ) -> [(connection: Connection, idleSince: Int)] {
        var idle: [(connection: Connection, idleSince: Int)] = []
        let time = now()
        for connection in open where !connection.isCut.load(ordering: .relaxed) {
            if let idleSince = connection.idleStart, idleSince <= time { idle.append((connection, idleSince)) }
        }
        idle.sort { $0.idleSince < $1.idleSince }
        return idle.prefix(maximumCandidates).reversed()
    }

    /// Shuts down the sockets of late and stalled clients; their threads then treat them as closed by the client.
    private func cutLate() {
        let time = now()
        connections.withLock { connections in
            for connection in connections.open.values
            where connection.isLate(time) || connection.hasStalled(for: connectionTimeout * 1000, time) {
                shutdown(connection.descriptor, Int32(SHUT_RDWR))
            }
        }
    }
}

/// Returns milliseconds of a monotonic clock that is cheap to read and accurate to a few milliseconds.
private func now() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
    return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}
