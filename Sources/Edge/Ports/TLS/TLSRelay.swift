import Base
import Coordination
import Dispatch
import Foundation
import Glibc
package import Logging
import Synchronization

/// Terminates TLS on separate threads. A server gets one end of a socket pair, which carries the bytes that the
/// client's socket would carry without TLS.
package final class TLSRelay: Component {
    /// Maximum time without progress for a client to receive the remaining bytes when its connection ends. The kernel
    /// accepts more bytes from the relay when a third of its buffer, some 32 KiB, is free again.
    static let flushTimeout = Duration.seconds(5)
    /// The time for which a connection stays open after its end was sent.
    static let lingerTime = Duration.seconds(1)
    /// Maximum number of connections that linger on one thread; further ones are closed immediately.
    static let maximumLingering = 64
    /// Maximum time for existing connections to end when the gateway stops.
    static let stopTimeout = Duration.milliseconds(100)
    /// Maximum number of handshakes that a thread performs before it relays again: each takes up to a millisecond.
    static let handshakesPerTurn = 4
    /// The memory of a connection, in bytes, including OpenSSL's memory for an idle one.
    static let connectionCost = 16 << 10

    /// The receivers of connections.
    package struct Handlers: Sendable {
        /// Takes over the server's end of a connection.
        let serve: @Sendable (ProtocolPeek, Int32, ConnectionOrigin) -> Void
        /// Takes over the socket of a client that does not use TLS.
        let refusePlainText: @Sendable (Int32) -> Void

        package init(
            serve: @escaping @Sendable (ProtocolPeek, Int32, ConnectionOrigin) -> Void,
            refusePlainText: @escaping @Sendable (Int32) -> Void
        ) {
            (self.serve, self.refusePlainText) = (serve, refusePlainText)
        }
    }

    private let threads: [RelayThread]
    private let next = Atomic<UInt>(0)

    /// - Parameters:
    ///   - maximumHandshakes: maximum number of connections whose protocol is not known; a further one causes the
    ///     oldest to be closed.
    ///   - handshakeTimeout: maximum time for a handshake and the bytes after it that identify the protocol.
    ///   - flushTimeout: maximum time without progress for a client to receive the remaining bytes when its connection
    ///     ends.
    ///   - userTimeout: maximum time that sent bytes may stay unacknowledged by an HTTP client, in seconds.
    package init(
        threads: Int = max(2, ProcessInfo.processInfo.activeProcessorCount),
        certificates: CertificateStore,
        maximumHandshakes: Int,
        handshakeTimeout: Duration = .seconds(10),
        flushTimeout: Duration = TLSRelay.flushTimeout,
        userTimeout: Int,
        handlers: Handlers,
        logger: Logger
    ) {
        self.threads = (0..<threads).map { number in
            RelayThread(
                name: "tls-\(number)",
                certificates: certificates,
                maximumHandshakes: max(1, maximumHandshakes / threads),
                handshakeTimeout: handshakeTimeout,
                flushTimeout: flushTimeout,
                userTimeout: userTimeout,
                handlers: handlers,
                logger: logger
            )
        }
    }

    /// Takes over the socket of a client, from any thread. The socket is closed if the relay does not run.
    package func take(_ descriptor: Int32, peer: String) {
        let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
        threads[Int(number % UInt(threads.count))].take(RelayThread.Arrival(descriptor: descriptor, peer: peer))
    }

    /// The number of connections that were passed to a server since the start.
    package var served: Int { threads.reduce(0) { $0 + $1.served.load(ordering: .relaxed) } }

    /// The number of connections that ended earlier since the start, by reason.
    package var failures: [HandshakeFailure: Int] {
        threads.reduce(into: [:]) { sum, thread in sum.merge(thread.failures.all, uniquingKeysWith: +) }
    }

    func start() async throws {
        var started: [RelayThread] = []
        do {
            for thread in threads {
                try thread.start()
                started.append(thread)
            }
        } catch {
            for thread in started { thread.stop() }
            throw error
        }
    }

    func stop() async {
        for thread in threads { thread.stop() }
        await onBlockingThread { [threads] in
            for thread in threads { thread.waitForEnd() }
        }
    }
}

/// The messages from other threads to one thread of the relay.
final class RelayThread: Sendable {
    struct Arrival {
        let descriptor: Int32
        let peer: String
    }

    private struct State {
        /// The pipe that wakes the thread; nil while it does not run.
        var wake: Int32?
        var arrivals: [Arrival] = []
        var isStopping = false

        func signal() {
            guard let wake else { return }
            var byte: UInt8 = 1
            // A full pipe also wakes the thread.
            _ = write(wake, &byte, 1)
        }
    }

    let certificates: CertificateStore
    let maximumHandshakes: Int
    let handshakeTimeout: Duration
    let flushTimeout: Duration
    let userTimeout: Int
    let handlers: TLSRelay.Handlers
    let logger: Logger
    /// The number of connections that were passed to a server.
    let served = Atomic(0)
    /// The connections that ended earlier.
    let failures = HandshakeFailures()
    private let name: String
    private let state = Mutex(State())
    private let ended = DispatchGroup()

    init(
        name: String,
        certificates: CertificateStore,
        maximumHandshakes: Int,
        handshakeTimeout: Duration,
        flushTimeout: Duration,
        userTimeout: Int,
        handlers: TLSRelay.Handlers,
        logger: Logger
    ) {
        self.name = name
        self.certificates = certificates
        self.maximumHandshakes = maximumHandshakes
        self.handshakeTimeout = handshakeTimeout
        self.flushTimeout = flushTimeout
        self.userTimeout = userTimeout
        self.handlers = handlers
        self.logger = logger
    }

    func take(_ arrival: Arrival) {
        let isTaken = state.withLock { state in
            guard state.wake != nil, !state.isStopping else { return false }
            state.arrivals.append(arrival)
            if state.arrivals.count == 1 { state.signal() }
            return true
        }
        if !isTaken { close(arrival.descriptor) }
    }

    /// Returns the connections since the last call, and whether the thread must end.
    func takeArrivals() -> (arrivals: [Arrival], isStopping: Bool) {
        state.withLock { state in
            defer { state.arrivals.removeAll(keepingCapacity: true) }
            return (state.arrivals, state.isStopping)
        }
    }

    func start() throws {
        let (reading, writing) = try pipeClosedOnExec()
        for end in [reading, writing] { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        let poller = epollDescriptor()
        guard poller >= 0 else {
            let code = errno
            close(reading)
            close(writing)
            throw SystemCallError(call: "epoll_create1", code: code)
        }
        state.withLock { state in
            state.wake = writing
            state.isStopping = false
        }
        ended.enter()
        let thread = Thread { [self] in
            blockBrokenPipeSignal()
            let loop = RelayLoop(self, poller: poller, wake: reading)
            loop.run()
            let leftover = state.withLock { state in
                state.wake = nil
                defer { state.arrivals = [] }
                return state.arrivals
            }
            for arrival in leftover { close(arrival.descriptor) }
            for descriptor in [poller, reading, writing] { close(descriptor) }
            ended.leave()
        }
        thread.name = name
        thread.start()
    }

    func stop() {
        state.withLock { state in
            state.isStopping = true
            state.signal()
        }
    }

    func waitForEnd() { ended.wait() }

    /// Blocks SIGPIPE on this thread: OpenSSL uses write(2), which raises it if the client has disconnected.
    private func blockBrokenPipeSignal() {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }
}
