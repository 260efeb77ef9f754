import Dispatch
import Foundation
public import Logging
import Synchronization

/// A WebSocket server (RFC 6455) based on libwebsockets. It has no listening socket.
///
/// The owner of the port accepts connections, and passes the descriptors of those that request a WebSocket:
///
///     let server = WebSocketServer(configuration: .init(), handler: handler, logger: logger)
///     try server.start()
///     server.adopt(accept(listener, nil, nil), peer: "")
///     …
///     server.stop()
///
/// One thread serves all connections. libwebsockets allows all calls but one only on its own thread, so other threads
/// queue their work and wake it. libwebsockets 4.1 also accepts unmasked frames of a client, for which RFC 6455, 5.1,
/// requires a close, and does not report them. The process ignores SIGPIPE from the start on; other signals are not
/// changed.
public final class WebSocketServer: Sendable {
    /// The reason why a server does not start.
    public enum StartError: Error {
        /// It was already started or stopped; a server runs only once.
        case startedBefore
        /// The name of a subprotocol is empty, too long, or contains characters other than letters, digits, `-`, `_`
        /// and `.`.
        case invalidSubprotocol(String)
        /// libwebsockets could not be initialized; it has logged the reason.
        case contextNotCreated
    }

    private static let endTimeout = Duration.milliseconds(500)

    private enum State {
        case idle
        case started
        case stopped
    }

    private let configuration: Configuration
    private let handler: any WebSocketHandler
    private let logger: Logger
    private let state = Mutex(State.idle)
    private let mailbox: Mailbox
    private let counters = Counters()
    /// Entered while the service thread runs.
    private let running = DispatchGroup()

    /// Creates a server that is not started.
    public init(configuration: Configuration, handler: any WebSocketHandler, logger: Logger) {
        self.configuration = configuration
        mailbox = Mailbox(maximumArrivals: configuration.maximumPendingHandshakes)
        self.handler = handler
        self.logger = logger
    }

    /// Starts the service thread, which runs until ``stop()``, and returns when it can accept connections.
    public func start() throws {
        for name in configuration.subprotocols where !HandshakeCheck.isUsableSubprotocol(name) {
            throw StartError.invalidSubprotocol(name)
        }
        try state.withLock { state in
            guard case .idle = state else { throw StartError.startedBefore }
            state = .started
        }
        LibraryLog.install(logger)

        let settled = DispatchSemaphore(value: 0)
        running.enter()
        let thread = Thread { [configuration, handler, logger, mailbox, counters, running] in
            let service = Service(
                configuration: configuration,
                handler: handler,
                logger: logger,
                mailbox: mailbox,
                counters: counters
            )
            let isOpen = service.open()
            settled.signal()
            if isOpen {
                service.run()
            }
            running.leave()
        }
        thread.name = "websockets"
        thread.start()
        settled.wait()
        guard mailbox.isOpen else {
            state.withLock { $0 = .stopped }
            throw StartError.contextNotCreated
        }
    }

    /// Adopts a connected stream socket, before or after its client has sent the handshake, of which no bytes may have
    /// been read. Call it from any thread.
    ///
    /// The server owns the descriptor in every case: if the server does not run, the descriptor is closed. If too many
    /// handshakes are incomplete, ``Configuration/refuse`` gets the oldest one.
    ///
    /// - Parameters:
    ///   - peer: the IP address of the client, for ``WebSocketHandshake/peer``; empty if it has none.
    ///   - context: an object for the connection, for ``WebSocketHandshake/context``.
    public func adopt(_ descriptor: Int32, peer: String, context: (any Sendable & AnyObject)? = nil) {
        if let surplus = mailbox.adopt(Mailbox.Arrival(descriptor: descriptor, peer: peer, context: context)) {
            counters.update { $0.refused += 1 }
            if let refuse = configuration.refuse { refuse(surplus) } else { close(surplus) }
        }
    }

    /// Closes every connection with ``Configuration/stopCode`` after its queued frames, waits until the close
    /// handshakes are complete, cuts the remaining connections, and ends the service thread.
    ///
    /// A handshake that arrives meanwhile gets 503. Must not be called from a handler, which runs on the thread that
    /// this waits for. May be called several times.
    ///
    /// - Parameter limit: maximum time for the close handshakes; ``Configuration/closeTimeout`` by default. After that,
    ///   the service thread has half a second to end. It may not end if a handler hangs.
    /// - Returns: whether the service thread has ended.
    @discardableResult
    public func stop(within limit: Duration? = nil) -> Bool {
        state.withLock { $0 = .stopped }
        mailbox.advance(to: .closing)
        if waitForEnd(limit ?? configuration.closeTimeout) { return true }
        mailbox.advance(to: .ending)
        if waitForEnd(Self.endTimeout) { return true }
        logger.error("the service thread of the WebSocket server does not end")
        return false
    }

    private func waitForEnd(_ limit: Duration) -> Bool {
        running.wait(timeout: .now() + .microseconds(Int(Configuration.microseconds(limit)))) == .success
    }

    /// The current counts.
    public var statistics: Statistics {
        counters.current
    }
}
