import CWebSockets

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Pings, and the end of clients that do not answer them.
///
/// libwebsockets could do both, but cuts a connection without a notice, also while its client reads.
extension Service {
    /// The reason of the close.
    private static let noPong = "neither pings are answered nor messages read"

    /// Sets the timer of an open connection, unless it fires earlier. One timer serves pings and messages.
    func arm(_ session: Session, _ wsi: OpaquePointer, at time: ContinuousClock.Instant) {
        if let set = session.timerTime, set <= time { return }
        session.timerTime = time
        lws_set_timer_usecs(wsi, max(1, WebSocketServer.Configuration.microseconds(time - .now)))
    }

    /// Called when the timer of an open connection has fired.
    func openTimedOut(_ session: Session, _ connection: WebSocketConnection, _ wsi: OpaquePointer) {
        session.timerTime = nil
        messageTimedOut(session, connection, wsi)
        checkLiveness(session, connection, wsi)
        guard case .open = session.phase else { return }
        if let next = session.liveness?.next { arm(session, wsi, at: next) }
    }

    private func checkLiveness(_ session: Session, _ connection: WebSocketConnection, _ wsi: OpaquePointer) {
        guard connection.isOpen, var liveness = session.liveness else { return }
        let step = liveness.step(backlog(of: session, wsi), now: .now)
        session.liveness = liveness
        switch step {
        case .nothing: break
        case .ping:
            session.owesPing = true
            lws_callback_on_writable(wsi)
        case .giveUp:
            connection.close(code: configuration.unresponsiveCode, reason: Self.noPong, discardsQueue: true)
            // The rest of a message is not sent, either: a close frame may follow any fragment.
            session.outbound = nil
            noteClose(connection.pendingCloseCode, session, of: connection, wsi)
            lws_callback_on_writable(wsi)
        }
    }

    private func backlog(of session: Session, _ wsi: OpaquePointer) -> Liveness.Backlog {
        let descriptor = lws_get_socket_fd(wsi)
        var unsent: Int32 = 0
        let taken = cws_taken_bytes(descriptor, Int64(session.passedBytes), &unsent)
        var unread: Int32 = 0
        _ = ioctl(descriptor, UInt(FIONREAD), &unread)
        return Liveness.Backlog(
            taken: Int(clamping: taken),
            isWaiting: unsent > 0 || lws_partial_buffered(wsi) != 0,
            hasInput: unread > 0
        )
    }

    /// Sends a ping that is due. Returns false if the connection is lost.
    func sendPing(_ session: Session, to wsi: OpaquePointer) -> Bool {
        guard session.owesPing else { return true }
        session.owesPing = false
        return sender.writePing(of: session, to: wsi)
    }

    /// Notes that the socket accepts bytes again.
    func noteSpace(_ session: Session, _ wsi: OpaquePointer) {
        if let limit = session.unsent.drained(now: .now) { cws_limit_unsent(wsi, Int32(limit)) }
    }
}
