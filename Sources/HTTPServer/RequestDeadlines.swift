import Dispatch
import Glibc
import Synchronization

/// Cuts the connections of clients that take too long to send a request, even if single bytes keep the connection from
/// being idle: libmicrohttpd limits only the time without progress.
///
/// libmicrohttpd does not report when the first byte of a request arrives. On a kept-alive connection, it arrives
/// within ``HTTPServer/Configuration/connectionTimeout`` after the end of the last response, or the connection is
/// closed as idle. Therefore the deadline of such a request is later by that time, so that neither idle connections nor
/// requests in time are affected.
final class RequestDeadlines: Sendable {
    /// One open connection.
    final class Connection: Sendable {
        fileprivate let descriptor: Int32
        /// The IP address of the client; empty if it has none.
        let peer: String
        /// See ``HTTPRequestHead/connectionContext``.
        let context: (any Sendable & AnyObject)?
        /// When the body of the request must be complete, in milliseconds of `now()`; `Int.max` if none is expected.
        private let deadline: Atomic<Int>
        /// Since when no request is being answered, in milliseconds of `now()`; `Int.max` while one is being answered.
        /// In the future for a new connection.
        private let idleSince: Atomic<Int>
        /// Whether it was cut in favour of a new connection. Written with the lock of `connections` held.
        fileprivate let isCut = Atomic(false)
        /// Maximum time from the end of a response to the end of the next request's body, in milliseconds.
        private let timeoutAfterResponse: Int
        /// See ``HTTPRequestHead/connectionState``. Invariant: only the thread of the connection uses it, while it
        /// reads a head.
        nonisolated(unsafe) var state: (any Sendable & AnyObject)?

        fileprivate init(
            descriptor: Int32,
            peer: String,
            context: (any Sendable & AnyObject)?,
            timeout: Int,
            timeoutAfterResponse: Int
        ) {
            self.descriptor = descriptor
            self.peer = peer
            self.context = context
            idleSince = Atomic(now() + RequestDeadlines.firstRequestTime)
            deadline = Atomic(now() + timeout)
            self.timeoutAfterResponse = timeoutAfterResponse
        }

        /// Called when the head of a request is complete.
        func requestBegins() { idleSince.store(.max, ordering: .relaxed) }

        /// Called when the request is complete or no longer read.
        func answerBegins() { deadline.store(.max, ordering: .relaxed) }

        /// Called when an answer is sent, and the next request may arrive.
        func answerEnds() {
            deadline.store(now() + timeoutAfterResponse, ordering: .relaxed)
            idleSince.store(now(), ordering: .relaxed)
        }

        /// Nil while a request is being answered.
        fileprivate var idleStart: Int? {
            let time = idleSince.load(ordering: .relaxed)
            return time == .max ? nil : time
        }

        fileprivate func isLate(_ time: Int) -> Bool { deadline.load(ordering: .relaxed) <= time }
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

    /// Starts the checks for late requests.
    func start() {
        let milliseconds = max(1000, requestTimeout * 1000 / 4)
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
            timeout: requestTimeout * 1000,
            timeoutAfterResponse: (connectionTimeout + requestTimeout) * 1000
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

    /// Shuts down the sockets of late clients; their threads then treat them as closed by the client.
    private func cutLate() {
        let time = now()
        connections.withLock { connections in
            for connection in connections.open.values where connection.isLate(time) {
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
