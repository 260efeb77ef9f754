import Dispatch
import Foundation
public import Logging
import Synchronization

/// A WebSocket server (RFC 6455) over libwebsockets that owns no listening socket.
///
/// Whoever owns the port accepts, and hands over the descriptors of those connections that want a WebSocket:
///
///     let server = WebSocketServer(configuration: .init(), handler: handler, logger: logger)
///     try server.start()
///     server.adopt(accept(listener, nil, nil), peer: "")
///     …
///     server.stop()
///
/// One thread serves all connections. libwebsockets is bound to its thread in all but one call, so other threads leave
/// their work in a queue and wake it. libwebsockets 4.1 takes a client's frames without a mask too, where RFC 6455, 5.1, asks
/// for a close, and does not tell which they are. The process ignores SIGPIPE from the start on; no other signal is touched.
public final class WebSocketServer: Sendable {
    /// Why a server does not start.
    public enum StartError: Error {
        /// It was started or stopped before; a server runs once.
        case startedBefore
        /// A subprotocol's name is empty, too long, or has other characters than letters, digits, `-`, `_` and `.`.
        case invalidSubprotocol(String)
        /// libwebsockets could not set itself up; it has logged why.
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

    /// A server that is not yet started.
    public init(configuration: Configuration, handler: any WebSocketHandler, logger: Logger) {
        self.configuration = configuration
        mailbox = Mailbox(maximumArrivals: configuration.maximumPendingHandshakes)
        self.handler = handler
        self.logger = logger
    }

    /// Starts the service thread, which runs until ``stop()``; returns when it can take connections.
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

    /// Takes a connected stream socket whose client is about to send its handshake, or has sent it; nothing of it may
    /// have been read. From any thread.
    ///
    /// The descriptor belongs to the server in every case: where the server does not run, it is closed. Where too many
    /// wait for their handshake, ``Configuration/refuse`` takes the one that has waited longest.
    ///
    /// - Parameters:
    ///   - peer: The IP address of the client, for ``WebSocketHandshake/peer``; empty if it has none.
    ///   - context: Something about the connection, for ``WebSocketHandshake/context``.
    public func adopt(_ descriptor: Int32, peer: String, context: (any Sendable & AnyObject)? = nil) {
        if let surplus = mailbox.adopt(Mailbox.Arrival(descriptor: descriptor, peer: peer, context: context)) {
            counters.update { $0.refused += 1 }
            if let refuse = configuration.refuse { refuse(surplus) } else { close(surplus) }
        }
    }

    /// Closes every connection with ``Configuration/stopCode`` after what is queued for it, waits until their close
    /// handshakes are done, cuts what is left, and ends the service thread.
    ///
    /// A handshake that comes meanwhile gets 503. Must not be called from a handler, which runs on the thread that
    /// this waits for. May be called again.
    ///
    /// - Parameter limit: maximum time for the close handshakes; ``Configuration/closeTimeout`` by default. The service thread then
    ///   gets half a second to end. It may not if a handler hangs.
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

    /// The counts so far.
    public var statistics: Statistics {
        counters.current
    }
}
