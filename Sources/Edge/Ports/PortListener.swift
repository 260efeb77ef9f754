package import Base
import CEpoll
import Coordination
import Foundation
import Glibc
package import Logging
import Synchronization

/// Accepts connections on the only port and passes each to the server of its protocol, which its first bytes identify.
package final class PortListener: Component {
    /// Pause before accepting again after descriptors ran out.
    static let exhaustionPause = Duration.milliseconds(100)
    /// Number of descriptors that no connection gets, even if the limit of the process has been lowered since the start.
    /// libdispatch ends the process if it cannot open a file.
    static let spareDescriptors = 32

    /// The handling of an accepted connection.
    package enum Reception: Sendable {
        /// The first bytes identify the protocol.
        case serve(@Sendable (ProtocolPeek, Int32, ConnectionOrigin) -> Void)
        /// The connection is passed on immediately, because its bytes do not identify the protocol before TLS is
        /// terminated; with the numeric IP address of the peer.
        case relay(@Sendable (Int32, String) -> Void)
    }

    private enum State {
        case idle
        case listening(port: UInt16, stop: PollSignal, ended: DispatchSemaphore)
    }

    private let host: String
    private let wantedPort: UInt16
    private let maximumUndecided: Int
    private let decisionTimeout: Duration
    private let proxies: [AddressRange]?
    private let receive: Reception
    private let refuse: @Sendable (Int32) -> Void
    private let logger: Logger
    private let state = Mutex(State.idle)

    /// - Parameters:
    ///   - maximumUndecided: maximum number of connections whose protocol is not yet known; a further one causes the
    ///     oldest to be refused.
    ///   - decisionTimeout: maximum time for a connection to send the bytes that identify its protocol.
    ///   - proxies: the proxies from which every connection begins with a header of the PROXY protocol; other
    ///     connections are closed. Nil if the protocol is not used.
    ///   - receive: takes over the descriptors of connections.
    ///   - refuse: takes over the descriptor of a connection for which there is no space.
    package init(
        host: String,
        port: UInt16,
        maximumUndecided: Int,
        decisionTimeout: Duration,
        proxies: [AddressRange]? = nil,
        receive: Reception,
        refuse: @escaping @Sendable (Int32) -> Void,
        logger: Logger
    ) {
        self.host = host
        wantedPort = port
        self.maximumUndecided = maximumUndecided
        self.decisionTimeout = decisionTimeout
        self.proxies = proxies
        self.receive = receive
        self.refuse = refuse
        self.logger = logger
    }

    /// The port that the listener accepts connections on; nil unless it is started.
    package var port: UInt16? {
        state.withLock { state in
            if case .listening(let port, _, _) = state { port } else { nil }
        }
    }

    func start() async throws {
        let socket = try ListeningSocket(host: host, port: wantedPort)
        let poller = epoll_create1(Int32(EPOLL_CLOEXEC))
        let stop: PollSignal
        do {
            guard poller >= 0 else { throw SystemCallError(call: "epoll_create1", code: errno) }
            stop = try PollSignal()
        } catch {
            if poller >= 0 { close(poller) }
            close(socket.descriptor)
            throw error
        }
        let ended = DispatchSemaphore(value: 0)
        state.withLock { $0 = .listening(port: socket.port, stop: stop, ended: ended) }
        let thread = Thread { [self] in
            var loop = AcceptLoop(
                poller: poller,
                listener: socket.descriptor,
                stop: stop,
                maximumUndecided: maximumUndecided,
                decisionTimeout: decisionTimeout,
                proxies: proxies,
                receive: receive,
                refuse: refuse,
                logger: logger
            )
            loop.run()
            ended.signal()
        }
        thread.name = "listener"
        thread.start()
    }

    func stop() async {
        let old = state.withLock { state in
            defer { state = .idle }
            return state
        }
        guard case .listening(_, let stop, let ended) = old else { return }
        stop.raise()
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                ended.wait()
                continuation.resume()
            }
        }
    }
}

/// The loop of the listener's thread. Only this thread uses these descriptors.
private struct AcceptLoop {
    /// A connection whose protocol is not yet known.
    private struct Undecided {
        let descriptor: Int32
        var peer: String
        /// Whether the header of the PROXY protocol has not arrived yet.
        var awaitsHeader: Bool
        let deadline: ContinuousClock.Instant
    }

    private enum Decision {
        case wait
        case close
        case handOver(() -> Void)
    }

    private let listener: Int32
    private let stop: PollSignal
    private let maximumUndecided: Int
    private let decisionTimeout: Duration
    private let refuse: (Int32) -> Void
    private let logger: Logger
    private let proxies: [AddressRange]?
    private let receive: PortListener.Reception
    private let poller: Int32
    /// In the order of arrival, which is also the order of their deadlines.
    private var undecided: [Undecided] = []
    private var pausedUntil: ContinuousClock.Instant?
    /// Whether descriptors have run out. Reset when the backlog is empty.
    private var isExhausted = false

    init(
        poller: Int32,
        listener: Int32,
        stop: PollSignal,
        maximumUndecided: Int,
        decisionTimeout: Duration,
        proxies: [AddressRange]?,
        receive: PortListener.Reception,
        refuse: @escaping (Int32) -> Void,
        logger: Logger
    ) {
        self.poller = poller
        self.listener = listener
        self.stop = stop
        self.maximumUndecided = maximumUndecided
        self.decisionTimeout = decisionTimeout
        self.refuse = refuse
        self.logger = logger
        self.proxies = proxies
        self.receive = receive
    }

    mutating func run() {
        watch(listener, EPOLLIN.rawValue)
        watch(stop.descriptor, EPOLLIN.rawValue)
        var events = Array(repeating: epoll_event(), count: 256)
        loop: while true {
            let count = epoll_wait(poller, &events, Int32(events.count), timeout)
            for event in events.prefix(Int(max(count, 0))) {
                switch event.data.fd {
                case stop.descriptor: break loop
                case listener: acceptAll()
                default: decide(event.data.fd)
                }
            }
            resumeAccepting()
            dropExpired()
        }
        for connection in undecided { close(connection.descriptor) }
        close(listener)
        close(poller)
    }

    private func watch(_ descriptor: Int32, _ events: UInt32) {
        var event = epoll_event(events: events, data: epoll_data_t(fd: descriptor))
        epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event)
    }

    private func forget(_ descriptor: Int32) {
        epoll_ctl(poller, EPOLL_CTL_DEL, descriptor, nil)
    }

    /// Milliseconds to the next deadline, or -1.
    private var timeout: Int32 {
        guard let next = [undecided.first?.deadline, pausedUntil].compactMap(\.self).min() else { return -1 }
        return Int32(clamping: Int64(max((next - .now) / .milliseconds(1), 0).rounded(.up)))
    }

    private mutating func acceptAll() {
        while true {
            let (descriptor, peer) = acceptConnection(from: listener)
            if descriptor >= 0 {
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
                guard isSpare(descriptor) else {
                    take(descriptor, peer: peer)
                    continue
                }
                refuse(descriptor)
                return pause(errorText(EMFILE))
            }
            switch errno {
            case EINTR, ECONNABORTED, EPROTO: continue
            case EAGAIN:
                isExhausted = false
                return
            default:
                return pause(errorText(errno))
            }
        }
    }

    /// Stops accepting for a moment, because descriptors or memory have run out. Connections stay in the backlog, and
    /// epoll would report them again immediately.
    private mutating func pause(_ error: String) {
        if !isExhausted { logger.error("cannot accept", metadata: ["error": "\(error)"]) }
        isExhausted = true
        forget(listener)
        pausedUntil = .now + PortListener.exhaustionPause
    }

    /// Returns whether a new descriptor is one of the last: the kernel assigns the lowest free number.
    private func isSpare(_ descriptor: Int32) -> Bool {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int(descriptor) >= Int(clamping: limit.rlim_cur) - PortListener.spareDescriptors
    }

    private mutating func resumeAccepting() {
        guard let end = pausedUntil, .now >= end else { return }
        pausedUntil = nil
        watch(listener, EPOLLIN.rawValue)
    }

    /// Passes a new connection to its server, or waits for its first bytes.
    private mutating func take(_ descriptor: Int32, peer: String) {
        if let proxies, !proxies.contains(where: { $0.contains(peer) }) {
            logger.debug("connection from another address than the proxies' closed", metadata: ["address": "\(peer)"])
            close(descriptor)
            return
        }
        var connection = Undecided(
            descriptor: descriptor,
            peer: peer,
            awaitsHeader: proxies != nil,
            deadline: .now + decisionTimeout
        )
        switch decide(&connection) {
        case .wait:
            if undecided.count >= maximumUndecided {
                let oldest = undecided.removeFirst().descriptor
                forget(oldest)
                refuse(oldest)
            }
            undecided.append(connection)
            // Edge-triggered: too few bytes must not wake the thread repeatedly.
            watch(descriptor, EPOLLIN.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue)
        case .close: close(descriptor)
        case .handOver(let handOver): handOver()
        }
    }

    private mutating func decide(_ descriptor: Int32) {
        guard let index = undecided.firstIndex(where: { $0.descriptor == descriptor }) else { return }
        switch decide(&undecided[index]) {
        case .wait: return
        case .close:
            undecided.remove(at: index)
            drop(descriptor)
        case .handOver(let handOver):
            undecided.remove(at: index)
            // Before it is handed over: afterwards, its number may belong to another file.
            forget(descriptor)
            handOver()
        }
    }

    private func decide(_ connection: inout Undecided) -> Decision {
        let descriptor = connection.descriptor
        if connection.awaitsHeader {
            switch readProxyHeader(descriptor) {
            case .incomplete: return .wait
            case .invalid: return .close
            case .complete(_, let address):
                connection.awaitsHeader = false
                connection.peer = address ?? connection.peer
            }
        }
        let peer = connection.peer
        switch receive {
        case .relay(let relay): return .handOver { relay(descriptor, peer) }
        case .serve(let serve):
            switch peek(descriptor) {
            case .undecided?: return .wait
            case let decision?: return .handOver { serve(decision, descriptor, ConnectionOrigin(peer: peer)) }
            case nil: return .close
            }
        }
    }

    /// Removes the header of the PROXY protocol from a connection if it has arrived completely.
    private func readProxyHeader(_ descriptor: Int32) -> ProxyHeader {
        var bytes = Array(repeating: UInt8(0), count: ProxyHeader.maximumLength)
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_PEEK))
        guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) ? .incomplete : .invalid }
        let header = ProxyHeader(Array(bytes[..<count]))
        if case .complete(let length, _) = header { recv(descriptor, &bytes, length, 0) }
        return header
    }

    /// Returns nil if the connection is closed.
    private func peek(_ descriptor: Int32) -> ProtocolPeek? {
        var bytes = Array(repeating: UInt8(0), count: ProtocolPeek.length)
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_PEEK))
        switch count {
        case 0: return nil
        case 1...: return ProtocolPeek(bytes.prefix(count))
        default: return errno == EAGAIN || errno == EINTR ? .undecided : nil
        }
    }

    private mutating func dropExpired() {
        let now = ContinuousClock.now
        while let first = undecided.first, first.deadline <= now {
            undecided.removeFirst()
            drop(first.descriptor)
        }
    }

    private func drop(_ descriptor: Int32) {
        forget(descriptor)
        close(descriptor)
    }
}
