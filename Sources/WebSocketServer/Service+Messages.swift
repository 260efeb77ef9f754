import CWebSockets

/// What goes in and out of open connections.
extension Service {
    /// Most frames and bytes given to one socket before the others get their turn.
    private static let framesPerTurn = 64
    private static let bytesPerTurn = 256 * 1024

    func received(_ bytes: UnsafeRawBufferPointer, _ session: Session, _ wsi: OpaquePointer) {
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

    func writable(_ session: Session, _ wsi: OpaquePointer) -> Int32 {
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
}
