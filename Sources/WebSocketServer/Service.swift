import CWebSockets
import Logging

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The service thread's part of a server: all code here runs on that thread, including the callbacks of libwebsockets.
///
/// libwebsockets gets each session as an unretained pointer. `sessions` retains it from before the adoption until
/// LWS_CALLBACK_WSI_DESTROY, the last callback of a connection.
final class Service {
    let configuration: WebSocketServer.Configuration
    let handler: any WebSocketHandler
    private let logger: Logger
    let mailbox: Mailbox
    /// The messages that were taken from the mailbox, and the number of connections among them that were attended to.
    private var contents = Mailbox.Contents()
    private var attended = 0
    /// Whether the turn was over before the mailbox was empty.
    private var hasMail = false
    let counters: Counters
    let check: HandshakeCheck
    let sender: FrameSender
    /// Nil if no connection uses compression, or memory has run out.
    let inflater: Inflater?

    private var engine: Engine?
    private var sessions: [UInt64: Session] = [:]
    /// Sessions that are not WebSockets yet, without those that are being cut.
    var pending: Set<UInt64> = []
    /// Number of sessions that are WebSockets.
    var openCount = 0
    private var lastID: UInt64 = 0
    /// The messages that were received since the service thread last waited for events.
    var readingTurn = ReadingTurn()
    /// The bytes that were sent since then.
    var writingTurn = WritingTurn(share: bytesPerTurn)
    /// The frames that are being sent together. Empty between the calls of ``send(_:of:to:isWritable:)``; a property,
    /// so that it is not allocated for each of them.
    var batch: [QueuedFrame] = []
    var phase = Mailbox.Phase.running

    init(
        configuration: WebSocketServer.Configuration,
        handler: any WebSocketHandler,
        logger: Logger,
        mailbox: Mailbox,
        counters: Counters
    ) {
        self.configuration = configuration
        self.handler = handler
        self.logger = logger
        self.mailbox = mailbox
        self.counters = counters
        check = HandshakeCheck(configuration: configuration)
        sender = FrameSender(compresses: configuration.allowsCompression)
        inflater = configuration.allowsCompression ? Inflater() : nil
    }

    /// Initializes libwebsockets. Returns false if that fails.
    func open() -> Bool {
        engine = Engine(
            configuration: configuration,
            logger: logger,
            callback: { wsi, reason, _, input, length in
                guard let wsi, let context = lws_get_context(wsi), let user = lws_context_user(context) else {
                    return 0
                }
                return Unmanaged<Service>.fromOpaque(user).takeUnretainedValue()
                    .handle(reason, wsi: wsi, input: UnsafeRawBufferPointer(start: input, count: length))
            },
            user: Unmanaged.passUnretained(self).toOpaque()
        )
        guard let engine else { return false }
        mailbox.open(Mailbox.Wakeable(context: engine.context))
        return true
    }

    /// Serves until the mailbox requests the end and all connections are gone.
    func run() {
        guard let engine else { return }
        while phase < .ending || !sessions.isEmpty {
            engine.step()
            beginReadingTurn()
            beginWritingTurn()
        }
        mailbox.shut()
        engine.destroy()
        self.engine = nil
    }

    /// Handles a callback. A return value other than zero makes libwebsockets close the connection.
    private func handle(_ reason: lws_callback_reasons, wsi: OpaquePointer, input: UnsafeRawBufferPointer) -> Int32 {
        if reason == LWS_CALLBACK_EVENT_WAIT_CANCELLED {
            // Called once for each subprotocol.
            if lws_get_protocol(wsi)?.pointee.id == 0 {
                readMailbox()
            }
            return 0
        }
        guard let opaque = lws_get_opaque_user_data(wsi) else { return 0 }
        let session = Unmanaged<Session>.fromOpaque(opaque).takeUnretainedValue()
        switch reason {
        case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
            return decide(session, wsi)
        case LWS_CALLBACK_HTTP:
            guard case .handshaking = session.phase else { return -1 }
            refuse(session, wsi, with: check.refusalOfPlainRequest(wsi))
            return -1
        case LWS_CALLBACK_CONFIRM_EXTENSION_OKAY:
            return agreesToCompression(session, wsi) ? 0 : 1
        case LWS_CALLBACK_ADD_HEADERS:
            if let agreed = session.agreedCompression {
                cws_extend_header(input.baseAddress, agreed)
            }
        case LWS_CALLBACK_ESTABLISHED:
            established(session, wsi)
        case LWS_CALLBACK_RECEIVE:
            received(input, session, wsi)
        case LWS_CALLBACK_RECEIVE_PONG:
            receivedPong(session, wsi)
        case LWS_CALLBACK_SERVER_WRITEABLE:
            return writable(session, wsi)
        case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
            return peerCloses(session, wsi, payload: input)
        case LWS_CALLBACK_TIMER:
            timedOut(session, wsi)
        case LWS_CALLBACK_CLOSED:
            finish(session)
        case LWS_CALLBACK_WSI_DESTROY:
            finish(session)
            sessions[session.id] = nil
            endIfDrained()
        default:
            break
        }
        return 0
    }

    /// Resumes reading on paused connections.
    private func beginReadingTurn() {
        for id in readingTurn.begin() {
            guard let session = sessions[id], let wsi = session.wsi, session.reading == .paused else { continue }
            session.reading = .on
            lws_rx_flow_control(wsi, 1)
        }
    }

    /// Makes the next connections in line send.
    private func beginWritingTurn() {
        for id in writingTurn.begin() {
            guard let session = sessions[id], let wsi = session.wsi else { continue }
            session.isInLine = false
            lws_callback_on_writable(wsi)
        }
        // There may be no other event that ends the wait.
        if writingTurn.hasLine || hasMail, let engine {
            lws_cancel_service(engine.context)
        }
    }

    // MARK: Mailbox

    /// Handles messages until the mailbox is empty or the turn is over.
    ///
    /// Connections that are scheduled meanwhile need no wake-up, which takes a system call there and two here.
    private func readMailbox() {
        hasMail = true
        while !writingTurn.isOver {
            if attended < contents.connections.count {
                attended += 1
                attend(contents.connections[attended - 1])
                continue
            }
            attended = 0
            hasMail = mailbox.take(into: &contents)
            guard hasMail else { return }
            for arrival in contents.arrivals {
                adopt(arrival)
            }
            advance(to: contents.phase)
        }
    }

    private func advance(to next: Mailbox.Phase) {
        guard next > phase else { return }
        phase = next
        switch phase {
        case .running:
            break
        case .closing:
            for case .open(let connection) in sessions.values.map(\.phase) {
                connection.close(code: configuration.stopCode, reason: configuration.stopReason())
            }
            endIfDrained()
        case .ending:
            for session in sessions.values {
                session.wsi.map(cws_cut)
            }
        }
    }

    /// Ends the loop if a stop is complete. It waits for WebSockets, but not for incomplete requests.
    private func endIfDrained() {
        switch phase {
        case .running:
            break
        case .closing:
            if openCount == 0 {
                mailbox.advance(to: .ending)
            }
        case .ending:
            // The last connection may be gone before the loop waits, so that no event would end the wait.
            if sessions.isEmpty, let engine {
                lws_cancel_service(engine.context)
            }
        }
    }

    private func adopt(_ arrival: Mailbox.Arrival) {
        writingTurn.add(WritingTurn.attention)
        guard let engine, phase < .ending else {
            close(arrival.descriptor)
            counters.update { $0.refused += 1 }
            return
        }
        if pending.count >= configuration.maximumPendingHandshakes {
            cutOldestPending()
        }
        lastID += 1
        let session = Session(id: lastID, peer: arrival.peer, context: arrival.context)
        sessions[session.id] = session
        let opaque = Unmanaged.passUnretained(session).toOpaque()
        guard let wsi = cws_adopt(engine.vhost, arrival.descriptor, opaque) else {
            sessions[session.id] = nil
            return
        }
        session.wsi = wsi
        pending.insert(session.id)
        lws_set_timer_usecs(wsi, WebSocketServer.Configuration.microseconds(configuration.handshakeTimeout))
    }

    private func cutOldestPending() {
        guard let oldest = pending.min(), let session = sessions[oldest] else { return }
        pending.remove(oldest)
        if case .handshaking = session.phase {
            counters.update { $0.refused += 1 }
        }
        session.phase = .closed
        session.wsi.map(cws_cut)
    }

    /// Handles a connection whose queue is not empty.
    ///
    /// Sends at once, without knowing whether the socket accepts more bytes: it nearly always does, and libwebsockets
    /// keeps a batch that it does not accept. Waiting for a callback would take two calls of epoll_ctl and one of
    /// epoll_wait. With the batches, this reduced the processor time of the gateway for a frame to one of 1,000
    /// connections from 19 to 12 µs.
    private func attend(_ connection: WebSocketConnection) {
        guard let session = sessions[connection.id], let wsi = session.wsi, case .open = session.phase else { return }
        writingTurn.add(WritingTurn.attention)
        // libwebsockets calls back when the bytes are sent that it keeps. Once it has decided to close the connection,
        // no frame may follow the close frame.
        if session.outbound == nil, !session.owesPongs, lws_partial_buffered(wsi) == 0, lws_get_close_length(wsi) == 0 {
            // The event loop closes a lost connection, because this is not one of its callbacks.
            if !send(session, of: connection, to: wsi, isWritable: false) { cws_cut(wsi) }
        } else {
            noteClose(connection.pendingCloseCode, session, of: connection, wsi)
            lws_callback_on_writable(wsi)
        }
    }
}
