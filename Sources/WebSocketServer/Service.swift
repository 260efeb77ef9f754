import CWebSockets
import Logging

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The service thread's side of a server: everything here happens on that thread, the callbacks of libwebsockets too.
///
/// libwebsockets gets its session as an unretained pointer. `sessions` holds it from before the adoption until
/// LWS_CALLBACK_WSI_DESTROY, the last callback of a connection.
final class Service {
    /// Most frames and bytes given to one socket before the others get their turn.
    private static let framesPerTurn = 64
    private static let bytesPerTurn = 256 * 1024

    private let configuration: WebSocketServer.Configuration
    private let handler: any WebSocketHandler
    private let logger: Logger
    private let mailbox: Mailbox
    private let counters: Counters
    private let check: HandshakeCheck
    private let sender: FrameSender

    private var engine: Engine?
    private var sessions: [UInt64: Session] = [:]
    /// Sessions not on WebSocket, without those that are being cut.
    private var pending: Set<UInt64> = []
    /// Sessions on WebSocket.
    private var openCount = 0
    private var lastID: UInt64 = 0
    private var phase = Mailbox.Phase.running

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
    }

    /// False when libwebsockets cannot set itself up.
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

    /// Serves until the mailbox says to end, and all connections are gone.
    func run() {
        guard let engine else { return }
        while phase < .ending || !sessions.isEmpty {
            engine.step()
        }
        mailbox.shut()
        engine.destroy()
        self.engine = nil
    }

    /// What a callback returns: not zero makes libwebsockets close the connection.
    private func handle(_ reason: lws_callback_reasons, wsi: OpaquePointer, input: UnsafeRawBufferPointer) -> Int32 {
        if reason == LWS_CALLBACK_EVENT_WAIT_CANCELLED {
            // Comes once for each subprotocol.
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
            if session.compresses {
                cws_extend_header(input.baseAddress, Compression.agreedParameters)
            }
        case LWS_CALLBACK_ESTABLISHED:
            established(session)
        case LWS_CALLBACK_RECEIVE:
            received(input, session, wsi)
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

    // MARK: Mailbox

    private func readMailbox() {
        let contents = mailbox.take()
        for descriptor in contents.descriptors {
            adopt(descriptor)
        }
        for connection in contents.connections {
            attend(connection)
        }
        if contents.phase > phase {
            phase = contents.phase
            switch phase {
            case .running:
                break
            case .closing:
                for case .open(let connection) in sessions.values.map(\.phase) {
                    connection.close(code: 1001, reason: "going away")
                }
                endIfDrained()
            case .ending:
                for session in sessions.values {
                    session.wsi.map(cws_cut)
                }
            }
        }
    }

    /// A stop waits for WebSockets, not for requests that are half there.
    private func endIfDrained() {
        switch phase {
        case .running:
            break
        case .closing:
            if openCount == 0 {
                mailbox.advance(to: .ending)
            }
        case .ending:
            // The last connection may have gone before the loop waits, which would then be in vain.
            if sessions.isEmpty, let engine {
                lws_cancel_service(engine.context)
            }
        }
    }

    private func adopt(_ descriptor: Int32) {
        guard let engine, phase < .ending else {
            close(descriptor)
            counters.update { $0.refused += 1 }
            return
        }
        if pending.count >= WebSocketServer.Configuration.maximumPendingHandshakes {
            cutOldestPending()
        }
        lastID += 1
        let session = Session(id: lastID)
        sessions[session.id] = session
        guard let wsi = cws_adopt(engine.vhost, descriptor, Unmanaged.passUnretained(session).toOpaque()) else {
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

    /// Something waits in the connection's queue.
    private func attend(_ connection: WebSocketConnection) {
        guard let session = sessions[connection.id], let wsi = session.wsi, case .open = session.phase else { return }
        if let code = connection.pendingCloseCode {
            session.phase = .closing(connection, code: code)
            limitClosing(wsi)
        }
        lws_callback_on_writable(wsi)
    }

    /// A peer that does not read takes no close frame either.
    private func limitClosing(_ wsi: OpaquePointer) {
        lws_set_timer_usecs(wsi, WebSocketServer.Configuration.microseconds(configuration.closeTimeout))
    }

    // MARK: Handshake

    private func decide(_ session: Session, _ wsi: OpaquePointer) -> Int32 {
        // A connection that is being cut may still bring its request.
        guard case .handshaking = session.phase else { return -1 }
        let target: RequestHead.Target
        let offered: [String]
        let chosen: String?
        switch check.check(wsi) {
        case .invalid(let refusal):
            refuse(session, wsi, with: refusal)
            return 1
        case .valid(let asked, let names, let name):
            (target, offered, chosen) = (asked, names, name)
        }
        guard phase == .running, openCount < configuration.maximumConnections else {
            refuse(session, wsi, with: check.unavailable(isStopping: phase != .running))
            return 1
        }
        let request = WebSocketHandshake(
            wsi: wsi,
            target: target,
            offeredSubprotocols: offered,
            subprotocol: chosen
        )
        switch handler.handshake(request) {
        case .refuse(let status, let headers, let body):
            refuse(session, wsi, with: Refusal(status: status, headers: headers, body: body))
            return 1
        case .accept(let opened):
            let connection = WebSocketConnection(
                id: session.id,
                mailbox: mailbox,
                counters: counters,
                configuration: configuration
            )
            session.phase = .accepted(connection, opened: opened)
            openCount += 1
            pending.remove(session.id)
            return 0
        }
    }

    private func refuse(_ session: Session, _ wsi: OpaquePointer, with refusal: Refusal) {
        session.phase = .refused
        counters.update { $0.refused += 1 }
        refusal.write(to: wsi, omittingBody: RequestHead.isPresent(WSI_TOKEN_HEAD_URI, in: wsi))
    }

    /// Asked for each offer. Only the last, which comes after those that the client likes better, is agreed to:
    /// libwebsockets drops a connection that offers more after an agreement.
    private func agreesToCompression(_ session: Session, _ wsi: OpaquePointer) -> Bool {
        session.compressionOffers += 1
        guard let value = RequestHead.value(of: WSI_TOKEN_EXTENSIONS, in: wsi) else { return false }
        let offers = Compression.offers(in: value)
        session.compresses = offers.isLastAcceptable && offers.count == session.compressionOffers
        return session.compresses
    }

    private func established(_ session: Session) {
        guard case .accepted(let connection, let opened) = session.phase else { return }
        session.phase = .open(connection)
        counters.update {
            $0.accepted += 1
            $0.open += 1
        }
        opened(connection)
    }

    // MARK: Messages

    private func received(_ bytes: UnsafeRawBufferPointer, _ session: Session, _ wsi: OpaquePointer) {
        guard case .open(let connection) = session.phase, connection.isOpen else { return }
        do throws(Inflater.Failure) {
            try gather(bytes, session, wsi)
        } catch {
            session.inbound = []
            session.inflater = nil
            switch error {
            case .tooLong: connection.close(code: 1009, reason: "message too big")
            case .malformed: connection.close(code: 1007, reason: "bad compressed data")
            }
            return
        }
        guard lws_is_final_fragment(wsi) != 0 else { return }
        let payload = session.inbound
        session.inbound = []
        session.inflater = nil
        counters.update {
            $0.messagesReceived += 1
            $0.bytesReceived += payload.count
        }
        guard lws_frame_is_binary(wsi) == 0 else {
            handler.received(.binary(payload), on: connection)
            return
        }
        guard let text = String(validating: payload, as: UTF8.self) else {
            connection.close(code: 1007, reason: "text is not UTF-8")
            return
        }
        handler.received(.text(text), on: connection)
    }

    /// Adds a part of a message to `session.inbound`.
    private func gather(
        _ bytes: UnsafeRawBufferPointer,
        _ session: Session,
        _ wsi: OpaquePointer
    ) throws(Inflater.Failure) {
        if session.compresses, lws_is_first_fragment(wsi) != 0,
            UInt8(lws_get_reserved_bits(wsi)) & Compression.mark != 0
        {
            session.inflater = Inflater()
            guard session.inflater != nil else { throw .tooLong }
        }
        let limit = configuration.maximumMessageSize
        guard let inflater = session.inflater else {
            guard session.inbound.count + bytes.count <= limit else { throw .tooLong }
            session.inbound += bytes
            return
        }
        try inflater.inflate(bytes, into: &session.inbound, limit: limit)
        guard lws_is_final_fragment(wsi) != 0 else { return }
        try inflater.end(&session.inbound, limit: limit)
    }

    private func writable(_ session: Session, _ wsi: OpaquePointer) -> Int32 {
        let connection: WebSocketConnection
        switch session.phase {
        case .open(let open): connection = open
        case .closing(let closing, _): connection = closing
        case .handshaking, .refused, .accepted, .closed: return 0
        }
        var messages = 0
        var bytes = 0
        defer {
            counters.update {
                $0.messagesSent += messages
                $0.bytesSent += bytes
            }
        }
        while messages < Self.framesPerTurn, bytes < Self.bytesPerTurn {
            if session.outbound == nil {
                switch connection.next() {
                case .nothing:
                    return 0
                case .close(let close):
                    beginClose(close, session, connection, wsi)
                    return 0
                case .frame(let frame, let hasDrained):
                    sender.begin(frame, of: session)
                    if hasDrained {
                        handler.drained(connection)
                    }
                }
            }
            switch sender.writeNext(of: session, to: wsi) {
            case .lost:
                return -1
            case .sent(let count, let isWhole):
                bytes += count
                messages += isWhole ? 1 : 0
            }
            // What a socket did not take is kept by libwebsockets, one fragment at most.
            if lws_partial_buffered(wsi) != 0 { break }
        }
        lws_callback_on_writable(wsi)
        return 0
    }

    // MARK: End

    private func beginClose(
        _ close: WebSocketConnection.Close,
        _ session: Session,
        _ connection: WebSocketConnection,
        _ wsi: OpaquePointer
    ) {
        // Another thread may have asked for it since the mailbox was read.
        if case .open = session.phase {
            session.phase = .closing(connection, code: close.code)
            limitClosing(wsi)
        }
        connection.shut()
        var reason = Array(close.reason.utf8)
        cws_close(wsi, close.code, &reason, reason.count)
    }

    private func peerCloses(_ session: Session, _ wsi: OpaquePointer, payload: UnsafeRawBufferPointer) -> Int32 {
        guard case .open(let connection) = session.phase else { return 0 }
        guard String(validating: payload.dropFirst(2), as: UTF8.self) != nil else { return -1 }
        connection.shut()
        let code = payload.count >= 2 ? UInt16(payload[0]) << 8 | UInt16(payload[1]) : 1005
        session.phase = .closing(connection, code: code)
        limitClosing(wsi)
        return 0
    }

    private func timedOut(_ session: Session, _ wsi: OpaquePointer) {
        switch session.phase {
        case .open, .closed:
            // The timer of the handshake: lws_set_timer_usecs() of libwebsockets 4.1 takes LWS_SET_TIMER_USEC_CANCEL
            // for a time that has passed, and the timer would go off at once.
            return
        case .handshaking:
            counters.update { $0.handshakeTimeouts += 1 }
        case .refused, .accepted, .closing:
            break
        }
        cws_cut(wsi)
    }

    private func finish(_ session: Session) {
        let phase = session.phase
        if session.isOnWebSocket {
            openCount -= 1
        }
        pending.remove(session.id)
        session.phase = .closed
        switch phase {
        case .open(let connection):
            closed(connection, code: 1006)
        case .closing(let connection, let code):
            closed(connection, code: code)
        case .handshaking, .refused, .accepted, .closed:
            break
        }
    }

    private func closed(_ connection: WebSocketConnection, code: UInt16) {
        connection.shut()
        counters.update { $0.open -= 1 }
        handler.closed(connection, code: code)
    }
}
