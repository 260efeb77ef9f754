import CWebSockets

/// What goes in and out of open connections.
extension Service {
    /// Most frames, and bytes sent and compressed, for one connection before the others get their turn.
    private static let framesPerTurn = 64
    private static let bytesPerTurn = 256 * 1024

    /// Reasons of closes.
    static let badMark = "rsv bits"
    private static let tooBig = "message too big"

    func received(_ bytes: UnsafeRawBufferPointer, _ session: Session, _ wsi: OpaquePointer) {
        guard case .open(let connection) = session.phase, connection.isOpen else { return }
        let isMarked = isMarked(wsi)
        guard !isMarked || !session.isInboundContinued else {
            connection.close(code: 1002, reason: Self.badMark)
            return
        }
        if !session.isInboundContinued {
            session.isInboundCompressed = isMarked
        }
        let limit = configuration.maximumMessageSize
        guard session.inbound.count + bytes.count <= limit else {
            session.inbound = []
            connection.close(code: 1009, reason: Self.tooBig)
            return
        }
        session.inbound += bytes
        guard lws_is_final_fragment(wsi) != 0 else {
            session.isInboundContinued = session.isInboundContinued || lws_remaining_packet_payload(wsi) == 0
            return
        }
        session.isInboundContinued = false
        var payload = session.inbound
        session.inbound = []
        if session.isInboundCompressed, let inflater {
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

    /// libwebsockets does not tell of an empty pong, nor of any ping: theirs may bear the mark.
    func receivedPong(_ session: Session, _ wsi: OpaquePointer) {
        guard case .open(let connection) = session.phase, isMarked(wsi) else { return }
        connection.close(code: 1002, reason: Self.badMark)
    }

    /// Whether the frame that is being read bears the mark of a compressed message. Only a message's first frame may
    /// (RFC 7692, 6.1), which libwebsockets sees to only on connections without compression.
    func isMarked(_ wsi: OpaquePointer) -> Bool {
        UInt8(truncatingIfNeeded: lws_get_reserved_bits(wsi)) & Compression.mark != 0
    }

    func writable(_ session: Session, _ wsi: OpaquePointer) -> Int32 {
        let connection: WebSocketConnection
        switch session.phase {
        case .open(let open): connection = open
        case .closing(let closing, _): connection = closing
        case .handshaking, .refused, .accepted, .closed: return 0
        }
        var messages = 0
        var bytes = 0
        var compressedBytes = 0
        defer {
            counters.update {
                $0.messagesSent += messages
                $0.bytesSent += bytes
            }
        }
        while messages < Self.framesPerTurn, bytes + compressedBytes < Self.bytesPerTurn {
            if session.outbound == nil {
                let (next, hasDrained) = connection.next(afterSending: session.sentBytes)
                session.sentBytes = 0
                if hasDrained {
                    handler.drained(connection)
                }
                switch next {
                case .nothing:
                    return 0
                case .close(let close):
                    beginClose(close, session, connection, wsi)
                    return 0
                case .frame(let queued):
                    compressedBytes += sender.begin(queued, of: session)
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
}
