import COpenSSL
import Foundation
import Glibc
import TestSupport

/// A blocking TLS client. Every call takes at most ten seconds.
final class TLSClient {
    enum Failure: Error, Equatable {
        case socket(Int32)
        case handshake
        /// The peer closed the connection without close_notify.
        case truncated
        case failed(Int32)
    }

    let descriptor: Int32
    private let context: OpaquePointer
    private let ssl: OpaquePointer

    /// Takes ownership of a connected socket, and completes the TLS handshake.
    ///
    /// - Parameters:
    ///   - authorities: the PEM file of the authorities that the peer's certificate is verified with; nil to trust
    ///     every peer.
    ///   - identity: the path of the client's certificate and key without `.pem` and `.key`.
    ///   - earlier: a connection whose session is resumed.
    init(descriptor: Int32, authorities: String? = nil, identity: String? = nil, resuming earlier: TLSClient? = nil)
        throws
    {
        self.descriptor = descriptor
        // OpenSSL uses write(2), which raises SIGPIPE.
        signal(SIGPIPE, SIG_IGN)
        var limit = timeval(tv_sec: 10, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        guard let context = SSL_CTX_new(TLS_client_method()) else { throw Failure.handshake }
        if let authorities {
            SSL_CTX_load_verify_file(context, authorities)
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        }
        guard let ssl = SSL_new(context) else { throw Failure.handshake }
        self.context = context
        self.ssl = ssl
        if let identity {
            SSL_use_certificate_file(ssl, identity + ".pem", SSL_FILETYPE_PEM)
            SSL_use_PrivateKey_file(ssl, identity + ".key", SSL_FILETYPE_PEM)
        }
        if let earlier { SSL_set_session(ssl, SSL_get_session(earlier.ssl)) }
        SSL_set_fd(ssl, descriptor)
        ERR_clear_error()
        guard SSL_connect(ssl) == 1 else { throw Failure.handshake }
    }

    /// Connects to a port of 127.0.0.1.
    convenience init(
        port: UInt16,
        receiveBuffer: Int32? = nil,
        authorities: String? = nil,
        identity: String? = nil
    ) throws {
        let descriptor = try Self.connect(to: port, receiveBuffer: receiveBuffer)
        try self.init(descriptor: descriptor, authorities: authorities, identity: identity)
    }

    /// Connects to a port of 127.0.0.1, and returns the socket.
    ///
    /// - Parameter receiveBuffer: how many bytes the kernel receives for a client that does not read; nil for the
    ///   system's default.
    static func connect(to port: UInt16, receiveBuffer: Int32? = nil) throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if var size = receiveBuffer {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw Failure.socket(errno) }
        return descriptor
    }

    deinit {
        SSL_free(ssl)
        SSL_CTX_free(context)
        close(descriptor)
    }

    /// The SHA-256 digest of the peer's certificate.
    var peerDigest: [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        if let certificate = SSL_get0_peer_certificate(ssl) { X509_digest(certificate, EVP_sha256(), &digest, nil) }
        return digest
    }

    /// Whether the handshake resumed an earlier session.
    var isResumed: Bool { SSL_session_reused(ssl) == 1 }

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            ERR_clear_error()
            let count = bytes[sent...].withUnsafeBytes { SSL_write(ssl, $0.baseAddress, Int32($0.count)) }
            guard count > 0 else { throw Failure.failed(SSL_get_error(ssl, count)) }
            sent += Int(count)
        }
    }

    /// Sends a piece repeatedly until no more bytes are accepted for 300 ms, or the connection has failed.
    ///
    /// - Returns: the number of bytes sent.
    @discardableResult
    func sendUntilBlocked(_ piece: [UInt8] = Array(repeating: 7, count: 1024)) -> Int {
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        var sent = 0
        while true {
            ERR_clear_error()
            let count = SSL_write(ssl, piece, Int32(piece.count))
            if count > 0 {
                sent += Int(count)
                continue
            }
            var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            if poll(&entry, 1, 300) == 0 || entry.revents & Int16(POLLERR | POLLHUP) != 0 { return sent }
        }
    }

    /// Reads once.
    ///
    /// - Returns: the bytes; empty after close_notify.
    func read(atMost maximum: Int = 16 << 10) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: maximum)
        ERR_clear_error()
        let count = SSL_read(ssl, &bytes, Int32(maximum))
        if count > 0 { return Array(bytes[..<Int(count)]) }
        switch SSL_get_error(ssl, count) {
        case SSL_ERROR_ZERO_RETURN: return []
        case SSL_ERROR_SSL where cssl_is_unexpected_end() == 1: throw Failure.truncated
        case let code: throw Failure.failed(code)
        }
    }

    func read(count: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let more = try read(atMost: min(16 << 10, count - bytes.count))
            if more.isEmpty { throw Failure.truncated }
            bytes += more
        }
        return bytes
    }

    /// Reads until the received data contains a text.
    func read(until text: String) throws -> String {
        var bytes: [UInt8] = []
        while true {
            let more = try read()
            bytes += more
            let all = String(decoding: bytes, as: UTF8.self)
            if all.contains(text) { return all }
            if more.isEmpty { throw Failure.truncated }
        }
    }

    /// Sends a request, and reads up to the end of a response with a JSON body.
    func request(_ line: String, host: String = "localhost", headers: String = "") throws -> String {
        try send("\(line) HTTP/1.1\r\nHost: \(host)\r\n\(headers)\r\n")
        return try read(until: "}")
    }

    /// Opens a WebSocket, and reads until its first frames contain a text.
    func open(_ target: String, host: String = "localhost", headers: String = "", until text: String) throws -> String {
        try send(
            """
            GET \(target) HTTP/1.1\r
            Host: \(host)\r
            Connection: Upgrade\r
            Upgrade: websocket\r
            Sec-WebSocket-Key: \(WebSocketClient.key)\r
            Sec-WebSocket-Version: 13\r
            \(headers)\r

            """
        )
        return try read(until: text)
    }

    /// Returns whether the peer resets the connection within a time. A regular end is not a reset.
    func isReset(within milliseconds: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&entry, 1, milliseconds) == 1 && entry.revents & Int16(POLLERR) != 0
    }

    /// Makes the kernel drop all incoming packets, so that nothing is acknowledged or answered any more.
    func vanish() {
        // struct sock_filter and struct sock_fprog of linux/filter.h: a program that returns 0, the number of bytes to
        // keep.
        struct Program {
            var count: UInt16 = 1
            var instructions: UnsafeMutablePointer<UInt64>
        }
        var returnNothing: UInt64 = 0x06
        let attachFilter: Int32 = 26
        withUnsafeMutablePointer(to: &returnNothing) { pointer in
            var program = Program(instructions: pointer)
            let size = socklen_t(MemoryLayout<Program>.size)
            let result = setsockopt(descriptor, SOL_SOCKET, attachFilter, &program, size)
            precondition(result == 0, "SO_ATTACH_FILTER: errno \(errno)")
        }
    }

    /// Sends close_notify.
    func closeNotify() { SSL_shutdown(ssl) }
}

extension Certificates {
    /// Flags that enable TLS in a gateway.
    var flags: [String] { ["--tls-certificate-file", path("server.pem"), "--tls-key-file", path("server.key")] }

    /// Replaces the certificate `server` with one of an intermediate authority, whose certificate follows in the same
    /// file.
    func makeServerWithIntermediate() throws {
        try make("intermediate", "basicConstraints=critical,CA:true")
        try make("server", "subjectAltName=IP:127.0.0.1,DNS:localhost", authority: "intermediate")
        let chain = try ["server.pem", "intermediate.pem"].map { try String(contentsOfFile: path($0), encoding: .utf8) }
        try chain.joined().write(toFile: path("server.pem"), atomically: true, encoding: .utf8)
    }
}
