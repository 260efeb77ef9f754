import CWebSockets

/// The handling of a request until it becomes a WebSocket or is refused.
extension Service {
    func decide(_ session: Session, _ wsi: OpaquePointer) -> Int32 {
        // The request of a connection that is being cut may still arrive.
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
            peer: session.peer,
            context: session.context,
            target: target,
            offeredSubprotocols: offered,
            subprotocol: chosen
        )
        switch handler.handshake(request) {
        case .refuse(let status, let headers, let body):
            refuse(session, wsi, with: Refusal(status: status, headers: headers, body: body))
            return 1
        case .accept(let opened):
            let connection = WebSocketConnection(id: session.id, mailbox: mailbox, configuration: configuration)
            session.phase = .accepted(connection, opened: opened)
            openCount += 1
            pending.remove(session.id)
            return 0
        }
    }

    func refuse(_ session: Session, _ wsi: OpaquePointer, with refusal: Refusal) {
        session.phase = .refused
        counters.update { $0.refused += 1 }
        refusal.write(to: wsi, omittingBody: RequestHead.isPresent(WSI_TOKEN_HEAD_URI, in: wsi))
    }

    /// Returns whether to accept an offer of compression; called for each offer. Only the last one, which has the
    /// lowest priority for the client, is accepted: libwebsockets drops a connection that offers more after an
    /// acceptance.
    func agreesToCompression(_ session: Session, _ wsi: OpaquePointer) -> Bool {
        session.compressionOffers += 1
        guard inflater != nil, let value = RequestHead.value(of: WSI_TOKEN_EXTENSIONS, in: wsi) else { return false }
        let offers = Compression.offers(in: value)
        session.agreedCompression = offers.count == session.compressionOffers ? offers.answerToLast : nil
        return session.compresses
    }

    func established(_ session: Session, _ wsi: OpaquePointer) {
        guard case .accepted(let connection, let opened) = session.phase else { return }
        session.phase = .open(connection)
        let liveness = Liveness(
            pingInterval: configuration.pingInterval,
            pongTimeout: configuration.pongTimeout,
            now: .now
        )
        session.liveness = liveness
        // Replaces the timer of the handshake.
        arm(session, wsi, at: liveness.next)
        counters.update {
            $0.accepted += 1
            $0.open += 1
        }
        opened(connection)
    }
}
