import CWebSockets

/// The inbound and outbound messages of open connections.
extension Service {
    /// Maximum numbers of frames, and of sent and compressed bytes, of one connection before the others get a turn.
    private static let framesPerTurn = 64
    static let bytesPerTurn = 256 * 1024

    /// The reasons of closes.
    static let badMark = "rsv bits"
    private static let tooBig = "message too big"
    private static let tooSlow = "message not complete in time"
    private static let noMemory = "no memory for this message now"

    func received(_ bytes: UnsafeRawBufferPointer, _ session: Session, _ wsi: OpaquePointer) {
        session.owesPongs = true
        guard case .open(let connection) = session.phase, connection.isOpen else { return }
        session.liveness?.heard(isPong: false, now: .now)
        limitTurn(session, wsi, received: bytes.count)
        let isMarked = isMarked(wsi)
        // A message that is not put back is discarded with its memory.
        var message =
            session.inbound.take()
            ?? InboundMessage(
                isCompressed: isMarked,
                deadline: .now + configuration.messageTimeout,
                budget: connection.budget
            )
        guard !isMarked || !message.isContinued else {
            connection.close(code: 1002, reason: Self.badMark)
            return
        }
        let limit = configuration.maximumMessageSize
        guard message.bytes.count + bytes.count <= limit else {
            refuse(session, connection, wsi, code: 1009, reason: Self.tooBig)
            return
        }
        let isLast = lws_is_final_fragment(wsi) != 0
        guard message.append(bytes, isLast: isLast, limit: limit) else {
            refuse(session, connection, wsi, code: 1013, reason: Self.noMemory)
            return
        }
        guard isLast else {
            message.isContinued = message.isContinued || lws_remaining_packet_payload(wsi) == 0
            session.inbound = consume message
            if let deadline = session.inbound?.deadline { arm(session, wsi, at: deadline) }
            return
        }
        var payload = message.bytes
        if message.isCompressed, let inflater {
            do throws(Inflater.Failure) {
                payload = try inflater.inflated(payload, limit: limit)
            } catch {
                switch error {
                case .tooLong: connection.close(code: 1009, reason: Self.tooBig)
                case .malformed: connection.close(code: 1007, reason: "bad compressed data")
                }
                return
            }
        }
        deliver(payload, on: connection, isBinary: lws_frame_is_binary(wsi) != 0)
    }

    /// Closes a connection in the middle of a message.
    ///
    /// During its closing handshake, libwebsockets reads all incoming bytes without a callback.
    private func refuse(
        _ session: Session,
        _ connection: WebSocketConnection,
        _ wsi: OpaquePointer,
        code: UInt16,
        reason: String
    ) {
        session.reading = .ended
        lws_rx_flow_control(wsi, 0)
        connection.close(code: code, reason: reason)
    }

    /// Pauses the connection if this turn has taken long enough: it continues reading in the next turn.
    private func limitTurn(_ session: Session, _ wsi: OpaquePointer, received count: Int) {
        guard readingTurn.isOver(afterReceiving: count), session.reading == .on else { return }
        session.reading = .paused
        readingTurn.paused.append(session.id)
        lws_rx_flow_control(wsi, 0)
    }

    /// Called when the timer of an open connection has fired.
    func messageTimedOut(_ session: Session, _ connection: WebSocketConnection, _ wsi: OpaquePointer) {
        guard let deadline = session.inbound?.deadline else { return }
        // Otherwise, it was set for an earlier message, or a ping.
        guard deadline > .now else {
            session.inbound = nil
            refuse(session, connection, wsi, code: 1008, reason: Self.tooSlow)
            return
        }
        arm(session, wsi, at: deadline)
    }

    private func deliver(_ payload: [UInt8], on connection: WebSocketConnection, isBinary: Bool) {
        counters.update {
            $0.messagesReceived += 1
            $0.bytesReceived += payload.count
        }
        guard !isBinary else {
            handler.received(.binary(payload), on: connection)
            return
        }
        guard let text = String(validating: payload, as: UTF8.self) else {
            connection.close(code: 1007, reason: "text is not UTF-8")
            return
        }
        handler.received(.text(text), on: connection)
    }

    /// Handles a pong. libwebsockets does not report empty pongs, nor any pings, whose first byte may contain the mark.
    func receivedPong(_ session: Session, _ wsi: OpaquePointer) {
        guard case .open(let connection) = session.phase else { return }
        session.liveness?.heard(isPong: true, now: .now)
        guard isMarked(wsi) else { return }
        connection.close(code: 1002, reason: Self.badMark)
    }

    /// Returns whether the frame that is being read has the mark of a compressed message. Only a message's first frame
    /// may have it (RFC 7692, 6.1), which libwebsockets checks only on connections without compression.
    func isMarked(_ wsi: OpaquePointer) -> Bool {
        UInt8(truncatingIfNeeded: lws_get_reserved_bits(wsi)) & Compression.mark != 0
    }

    func writable(_ session: Session, _ wsi: OpaquePointer) -> Int32 {
        session.owesPongs = false
        noteSpace(session, wsi)
        // libwebsockets also calls back when it has sent a close frame because of an invalid one. Nothing may follow it.
        guard lws_get_close_length(wsi) == 0 else { return 0 }
        return switch session.phase {
        case .open(let connection), .closing(let connection, _):
            send(session, of: connection, to: wsi, isWritable: true) ? 0 : -1
        case .handshaking, .refused, .accepted, .closed: 0
        }
    }

    /// Sends queued frames within the limits of a turn.
    ///
    /// - Parameter isWritable: whether this is the callback of a writable socket. Otherwise, libwebsockets must have no
    ///   bytes to send, and no frame be partly sent. Long frames and the close then wait for the callback.
    /// - Returns: false if the connection is lost.
    func send(
        _ session: Session,
        of connection: WebSocketConnection,
        to wsi: OpaquePointer,
        isWritable: Bool
    ) -> Bool {
        var sent = FrameSender.Sent()
        var compressedBytes = 0
        let limit = writingTurn.isOver ? WritingTurn.shortBytes : Self.bytesPerTurn
        defer {
            writingTurn.add(sent.bytes + compressedBytes)
            if sent.messages > 0 || sent.bytes > 0 {
                counters.update {
                    $0.messagesSent += sent.messages
                    $0.bytesSent += sent.bytes
                }
            }
        }
        session.kept = []
        guard sendPing(session, to: wsi) else { return false }
        while sent.messages < Self.framesPerTurn, sent.bytes + compressedBytes < limit {
            var isDrained = false
            if session.outbound == nil {
                let next = connection.next(
                    afterSending: session.sentBytes,
                    atMost: min(sender.batchBytes(of: session), limit - sent.bytes - compressedBytes),
                    Self.framesPerTurn - sent.messages,
                    into: &batch,
                    isWritable: isWritable
                )
                session.sentBytes = 0
                noteClose(next.closeCode, session, of: connection, wsi)
                if next.owesDrained {
                    handler.drained(connection)
                }
                switch next.item {
                case .nothing:
                    return true
                case .close(let close):
                    beginClose(close, session, connection, wsi)
                    return true
                case .later:
                    lws_callback_on_writable(wsi)
                    return true
                case .batch(let isLast):
                    isDrained = isLast
                case .long(let queued):
                    compressedBytes += sender.begin(queued, of: session)
                }
            }
            if session.outbound == nil {
                compressedBytes += sender.compress(batch, of: session)
                let isSent = sender.write(batch, of: session, to: wsi, &sent)
                // libwebsockets keeps the bytes that a socket did not accept: a batch or a fragment at most.
                if isSent, lws_partial_buffered(wsi) != 0 {
                    session.kept = batch
                    isDrained = true
                    session.unsent.filled(now: .now)
                }
                batch.removeAll(keepingCapacity: true)
                guard isSent else { return false }
                // If it keeps bytes, it requests a callback.
                if isDrained { return true }
                continue
            }
            if limit < sender.nextLength(of: session) {
                standInLine(session)
                return true
            }
            guard sender.writeNext(of: session, to: wsi, &sent) else { return false }
            if lws_partial_buffered(wsi) != 0 { break }
        }
        session.unsent.filled(now: .now)
        lws_callback_on_writable(wsi)
        return true
    }

    /// Puts a connection in line that has a long fragment to send after the turn is over.
    private func standInLine(_ session: Session) {
        guard !session.isInLine else { return }
        session.isInLine = true
        writingTurn.wait(session.id)
    }
}
