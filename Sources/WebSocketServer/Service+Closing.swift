import CWebSockets

/// The end of connections.
extension Service {
    /// Limits the time of a close: a peer that does not read does not receive a close frame, either.
    func limitClosing(_ wsi: OpaquePointer) {
        lws_set_timer_usecs(wsi, WebSocketServer.Configuration.microseconds(configuration.closeTimeout))
    }

    /// Records that the server closes a connection, when this is first seen.
    func noteClose(_ code: UInt16?, _ session: Session, of connection: WebSocketConnection, _ wsi: OpaquePointer) {
        guard let code, case .open = session.phase else { return }
        session.phase = .closing(connection, code: code)
        limitClosing(wsi)
    }

    func beginClose(
        _ close: WebSocketConnection.Close,
        _ session: Session,
        _ connection: WebSocketConnection,
        _ wsi: OpaquePointer
    ) {
        connection.shut()
        guard session.reading != .ended else {
            // The timer cuts the connection.
            sender.write(close, to: wsi)
            return
        }
        var reason = Array(close.reason.utf8)
        cws_close(wsi, close.code, &reason, reason.count)
    }

    func peerCloses(_ session: Session, _ wsi: OpaquePointer, payload: UnsafeRawBufferPointer) -> Int32 {
        guard case .open(let connection) = session.phase else { return 0 }
        guard String(validating: payload.dropFirst(2), as: UTF8.self) != nil else { return -1 }
        connection.shut()
        limitClosing(wsi)
        guard !isMarked(wsi) else {
            session.phase = .closing(connection, code: 1002)
            var reason = Array(Self.badMark.utf8)
            lws_close_reason(wsi, LWS_CLOSE_STATUS_PROTOCOL_ERR, &reason, reason.count)
            return -1
        }
        let code = payload.count >= 2 ? UInt16(payload[0]) << 8 | UInt16(payload[1]) : 1005
        session.phase = .closing(connection, code: code)
        return 0
    }

    func timedOut(_ session: Session, _ wsi: OpaquePointer) {
        switch session.phase {
        case .open(let connection):
            openTimedOut(session, connection, wsi)
            return
        case .closed:
            return
        case .handshaking:
            counters.update { $0.handshakeTimeouts += 1 }
        case .refused, .accepted, .closing:
            break
        }
        cws_cut(wsi)
    }

    func finish(_ session: Session) {
        let phase = session.phase
        if session.isOnWebSocket {
            openCount -= 1
        }
        pending.remove(session.id)
        session.phase = .closed
        session.outbound = nil
        session.kept = []
        session.inbound = nil
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
