import Access
import CEpoll
import COpenSSL
import Glibc

/// One TLS connection: the client's socket, OpenSSL, and one end of a socket pair. A server has the other end.
///
/// Only the thread of its ``RelayLoop`` uses it. No call blocks. At most one piece of ``pieceSize`` bytes is buffered
/// in each direction; while it can't be forwarded, nothing more is read on its side.
final class RelayedConnection {
    /// Maximum size of a TLS record: with a smaller size, decrypted bytes would stay in OpenSSL without a readiness
    /// event.
    static let pieceSize = 16 << 10
    /// Number of bytes that one connection may forward before the others get a turn.
    static let sliceSize = 64 << 10
    /// Size of the send buffers of the socket pair, in bytes. For the servers, bytes in these buffers are sent: large
    /// buffers would hide slow clients.
    static let pairBufferSize: Int32 = 32 << 10

    enum Phase {
        case handshaking
        /// The first bytes do not identify the protocol yet.
        case deciding
        case relaying
        /// The server has ended the connection, but the client has not received everything yet.
        case flushing
        /// Everything is sent. The client may still be sending: closing now would reset the connection before the
        /// client has read the answer.
        case lingering
    }

    enum Outcome {
        /// Wait until a descriptor is ready.
        case wait
        /// The connection has used its slice.
        case again
        /// The client does not use TLS.
        case plainText
        /// The first bytes, which are in ``inward``, identify the protocol.
        case decided(ProtocolPeek)
        case over
    }

    private enum Step {
        case blocked
        case progress(Int)
        case failed
    }

    /// Bytes that could not be forwarded.
    private struct Pending {
        private(set) var bytes: [UInt8] = []
        private var start = 0

        var isEmpty: Bool { start == bytes.count }

        mutating func set(_ rest: UnsafeRawBufferPointer) {
            bytes = Array(rest)
            start = 0
        }

        mutating func append(_ more: UnsafeRawBufferPointer) { bytes += more }

        mutating func drop(_ count: Int) {
            start += count
            if isEmpty { clear() }
        }

        mutating func clear() {
            bytes = []
            start = 0
        }

        func withRest<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
            bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[start...])) }
        }
    }

    let id: UInt64
    /// The client's socket.
    let outer: Int32
    /// Nil until a server has the connection.
    var origin: ConnectionOrigin?
    /// The address of the client.
    let peer: String
    private let ssl: OpaquePointer
    /// The relay's end of the socket pair; -1 if there is none.
    private(set) var inner: Int32 = -1
    private(set) var phase = Phase.handshaking
    /// Maximum time without progress for the client once the server has ended the connection.
    private let flushTimeout: Duration
    /// When the connection is closed; nil for no deadline.
    var deadline: ContinuousClock.Instant?
    /// Whether the connection is in the loop's queue.
    var isQueued = false
    /// Whether the loop counts it as lingering.
    var isCountedAsLingering = false
    /// The reason why it has ended, if its protocol is not known yet.
    private(set) var failure = HandshakeFailure.closed
    /// The events for which the loop watches the descriptors; nil if they are not watched.
    var watchedOuter: UInt32?
    var watchedInner: UInt32?
    /// The events for which the descriptors should be watched.
    private(set) var outerWants: UInt32 = EPOLLIN.rawValue
    private(set) var innerWants: UInt32 = 0

    private var inward = Pending()
    private var outward = Pending()
    private var hasPeeked = false
    /// Whether the client has ended sending.
    private var hasInwardEnded = false
    /// Whether this was signalled to the server.
    private var hasShutInner = false
    /// Whether the server has ended sending. Some of its bytes may still be in the socket pair.
    private var hasOutwardEnded = false
    /// Whether the server has closed without reading everything.
    private var isReset = false
    private var ownsOuter = true

    /// Takes over the client's socket.
    init(id: UInt64, outer: Int32, peer: String, ssl: OpaquePointer, flushTimeout: Duration) {
        self.id = id
        self.outer = outer
        self.peer = peer
        self.ssl = ssl
        self.flushTimeout = flushTimeout
    }

    deinit {
        SSL_free(ssl)
        if inner >= 0 { close(inner) }
        if ownsOuter { close(outer) }
    }

    var isUndecided: Bool {
        switch phase {
        case .handshaking, .deciding: true
        case .relaying, .flushing, .lingering: false
        }
    }

    /// The certificate of the client; nil if it has sent none.
    var certificate: ClientCertificate? { ClientCertificate(ofPeer: ssl) }

    /// Returns the client's socket, which the caller then owns.
    func releaseOuter() -> Int32 {
        ownsOuter = false
        return outer
    }

    /// Makes the kernel discard the bytes that it still buffers for the client when the connection is closed, and reset
    /// the connection.
    func discard() {
        var none = Glibc.linger(l_onoff: 1, l_linger: 0)
        setsockopt(outer, SOL_SOCKET, SO_LINGER, &none, socklen_t(MemoryLayout<Glibc.linger>.size))
    }

    /// Whether it must be reset after its deadline, so that the client does not treat the received bytes as complete.
    var isResetWhenLate: Bool {
        switch phase {
        case .handshaking, .deciding: false
        case .relaying, .flushing: true
        case .lingering: isReset
        }
    }

    /// Records that the server has ended sending. From now on, the client must make progress.
    func endOutward() {
        guard !hasOutwardEnded else { return }
        hasOutwardEnded = true
        deadline = .now + flushTimeout
    }

    /// Forwards as many bytes as possible.
    func advance(_ scratch: UnsafeMutableRawBufferPointer) -> Outcome {
        (outerWants, innerWants) = (0, 0)
        switch phase {
        case .handshaking: return shakeHands(scratch)
        case .deciding: return decide(scratch)
        case .relaying: return relay(scratch)
        case .flushing: return flush()
        case .lingering: return linger(scratch)
        }
    }

    // MARK: - Before the protocol is known

    private func shakeHands(_ scratch: UnsafeMutableRawBufferPointer) -> Outcome {
        if !hasPeeked {
            var byte: UInt8 = 0
            switch recv(outer, &byte, 1, Int32(MSG_PEEK)) {
            case 0: return .over
            case 1: hasPeeked = true
            default:
                guard errno == EAGAIN || errno == EINTR else { return .over }
                outerWants = EPOLLIN.rawValue
                return .wait
            }
            // A TLS record begins with its type, 22; a request begins with the name of a method.
            if UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte { return .plainText }
        }
        ERR_clear_error()
        let result = SSL_do_handshake(ssl)
        if result == 1 {
            phase = .deciding
            return decide(scratch)
        }
        return wants(after: result) ? .wait : .over
    }

    private func decide(_ scratch: UnsafeMutableRawBufferPointer) -> Outcome {
        while true {
            ERR_clear_error()
            let count = SSL_read(ssl, scratch.baseAddress, Int32(Self.pieceSize))
            guard count > 0 else { return wants(after: count) ? .wait : .over }
            inward.append(UnsafeRawBufferPointer(rebasing: scratch[..<Int(count)]))
            let peek = ProtocolPeek(inward.bytes.prefix(ProtocolPeek.length))
            if peek != .undecided { return .decided(peek) }
        }
    }

    /// Begins relaying.
    ///
    /// - Returns: the end of the socket pair for the server; nil if the process has no descriptors left.
    func connect() -> Int32? {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { return nil }
        var size = Self.pairBufferSize
        for end in ends { setsockopt(end, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size)) }
        inner = ends[0]
        phase = .relaying
        deadline = nil
        return ends[1]
    }

    // MARK: - Relaying

    private func relay(_ scratch: UnsafeMutableRawBufferPointer) -> Outcome {
        var rest = Self.sliceSize
        while true {
            (outerWants, innerWants) = (0, 0)
            var hasProgress = false
            for step in [passInward(scratch), passOutward(scratch)] {
                switch step {
                case .blocked: break
                case .progress(let count):
                    hasProgress = true
                    rest -= count
                case .failed: return .over
                }
            }
            if phase != .relaying { return flush() }
            if !hasProgress { return .wait }
            if rest <= 0 { return .again }
        }
    }

    private func passInward(_ scratch: UnsafeMutableRawBufferPointer) -> Step {
        if !inward.isEmpty {
            let count = inward.withRest { send(inner, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count > 0 { inward.drop(count) } else if !isRetried(errno) { stopInward() }
            if inward.isEmpty { return .progress(max(count, 0)) }
            innerWants |= EPOLLOUT.rawValue
            return .blocked
        }
        guard !hasInwardEnded else {
            if !hasShutInner {
                hasShutInner = true
                shutdown(inner, Int32(SHUT_WR))
            }
            return .blocked
        }
        ERR_clear_error()
        let count = SSL_read(ssl, scratch.baseAddress, Int32(Self.pieceSize))
        guard count > 0 else {
            if SSL_get_error(ssl, count) == SSL_ERROR_ZERO_RETURN {
                hasInwardEnded = true
                return .progress(0)
            }
            return wants(after: count) ? .blocked : .failed
        }
        origin?.noteReception()
        let piece = UnsafeRawBufferPointer(rebasing: scratch[..<Int(count)])
        let sent = send(inner, piece.baseAddress, piece.count, Int32(MSG_NOSIGNAL))
        if sent < 0, !isRetried(errno) {
            stopInward()
        } else if sent < piece.count {
            inward.set(UnsafeRawBufferPointer(rebasing: piece[max(sent, 0)...]))
        }
        return .progress(piece.count)
    }

    /// Records that the server reads no more; the end of its own sending follows.
    private func stopInward() {
        inward.clear()
        hasInwardEnded = true
        hasShutInner = true
    }

    private func passOutward(_ scratch: UnsafeMutableRawBufferPointer) -> Step {
        if !outward.isEmpty {
            let step = flushOutward()
            // Nothing is read from the server now. Its closing must be noticed nevertheless: for the server, the client
            // is gone then, and the lifetime of its descriptors must not depend on what the client reads.
            if case .blocked = step, !hasOutwardEnded { innerWants |= EPOLLRDHUP.rawValue }
            return step
        }
        let count = recv(inner, scratch.baseAddress, Self.pieceSize, 0)
        if count < 0, isRetried(errno) {
            innerWants |= EPOLLIN.rawValue
            return .blocked
        }
        guard count > 0 else {
            isReset = count < 0
            endOutward()
            close(inner)
            inner = -1
            phase = .flushing
            return .progress(0)
        }
        let piece = UnsafeRawBufferPointer(rebasing: scratch[..<count])
        guard let written = write(piece) else { return .failed }
        // OpenSSL may have begun a record: it must be called with the same bytes again.
        if written < count { outward.set(UnsafeRawBufferPointer(rebasing: piece[written...])) }
        return .progress(count)
    }

    private func flushOutward() -> Step {
        guard let written = outward.withRest(write) else { return .failed }
        outward.drop(written)
        return written > 0 ? .progress(written) : .blocked
    }

    /// Returns the number of bytes that OpenSSL has accepted; nil if the connection has failed.
    private func write(_ bytes: UnsafeRawBufferPointer) -> Int? {
        ERR_clear_error()
        let count = SSL_write(ssl, bytes.baseAddress, Int32(bytes.count))
        guard count > 0 else { return wants(after: count) ? 0 : nil }
        if hasOutwardEnded { deadline = .now + flushTimeout }
        return Int(count)
    }

    // MARK: - End

    private func flush() -> Outcome {
        (outerWants, innerWants) = (0, 0)
        while !outward.isEmpty {
            switch flushOutward() {
            case .blocked: return .wait
            case .progress: break
            case .failed: return .over
            }
        }
        if !isReset {
            ERR_clear_error()
            let result = SSL_shutdown(ssl)
            if result < 0, SSL_get_error(ssl, result) == SSL_ERROR_WANT_WRITE {
                outerWants = EPOLLOUT.rawValue
                return .wait
            }
        }
        shutdown(outer, Int32(SHUT_WR))
        phase = .lingering
        deadline = .now + TLSRelay.lingerTime
        return withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { linger($0) }
    }

    private func linger(_ scratch: UnsafeMutableRawBufferPointer) -> Outcome {
        for _ in 0..<16 {
            let count = recv(outer, scratch.baseAddress, scratch.count, 0)
            if count == 0 { return .over }
            guard count < 0 else { continue }
            guard isRetried(errno) else { return .over }
            outerWants = EPOLLIN.rawValue
            return .wait
        }
        return .again
    }

    // MARK: -

    /// Sets the events for which the client's socket is watched after a call of OpenSSL.
    ///
    /// - Returns: false if the connection has failed.
    private func wants(after result: Int32) -> Bool {
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: outerWants |= EPOLLIN.rawValue
        case SSL_ERROR_WANT_WRITE: outerWants |= EPOLLOUT.rawValue
        case SSL_ERROR_SSL:
            if cssl_is_unexpected_end() == 0 { failure = .tls }
            return false
        default: return false
        }
        return true
    }

    private func isRetried(_ code: Int32) -> Bool { code == EAGAIN || code == EINTR }
}
