import Foundation
import Glibc
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import Edge

/// A relay, and the connections that it has passed to the server.
final class RelayScene: Sendable {
    let certificates: Certificates
    let store: CertificateStore
    let relay: TLSRelay
    private let served = Mutex<[(descriptor: Int32, peek: ProtocolPeek, origin: ConnectionOrigin)]>([])
    let plain = Mutex<[Int32]>([])

    init(
        maximumHandshakes: Int = 16,
        handshakeTimeout: Duration = .seconds(10),
        flushTimeout: Duration = TLSRelay.flushTimeout,
        userTimeout: Int = 30,
        hasIntermediateAuthority: Bool = false,
        asksForCertificate: Bool = false,
        requires: Bool = false,
        ticketKeyLifetime: Duration = CertificateStore.ticketKeyLifetime
    ) async throws {
        certificates = try Certificates()
        if hasIntermediateAuthority { try certificates.makeServerWithIntermediate() }
        let files = TLSFiles(
            certificate: certificates.path("server.pem"),
            key: certificates.path("server.key"),
            clientAuthorities: asksForCertificate ? certificates.path("ca.pem") : nil,
            requiresClientCertificate: requires
        )
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        let box = Box()
        store = try CertificateStore(
            files,
            interval: .milliseconds(20),
            ticketKeyLifetime: ticketKeyLifetime,
            logger: logger
        )
        relay = TLSRelay(
            threads: 1,
            certificates: store,
            maximumHandshakes: maximumHandshakes,
            handshakeTimeout: handshakeTimeout,
            flushTimeout: flushTimeout,
            userTimeout: userTimeout,
            handlers: .init(
                serve: { peek, descriptor, origin in box.scene?.add(descriptor, peek, origin) },
                refusePlainText: { descriptor in box.scene?.plain.withLock { $0.append(descriptor) } }
            ),
            logger: logger
        )
        box.set(self)
        try await relay.start()
    }

    /// Refers to the scene, because the handlers are created before it.
    private final class Box: Sendable {
        private let held = Mutex<Weak?>(nil)
        struct Weak { weak var scene: RelayScene? }
        var scene: RelayScene? { held.withLock { $0?.scene } }
        func set(_ scene: RelayScene) { held.withLock { $0 = Weak(scene: scene) } }
    }

    private func add(_ descriptor: Int32, _ peek: ProtocolPeek, _ origin: ConnectionOrigin) {
        _ = fcntl(descriptor, F_SETFL, 0)
        var limit = timeval(tv_sec: 10, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        served.withLock { $0.append((descriptor, peek, origin)) }
    }

    /// Passes one end of a socket pair to the relay, and returns the other.
    func connect() throws -> Int32 {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        // Small buffers, so that tests can observe how much the relay itself holds.
        var size: Int32 = 4096
        for end in ends { setsockopt(end, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size)) }
        take(ends[0])
        return ends[1]
    }

    /// Passes the server's end of a TCP connection over the loopback device to the relay, and returns the client's end.
    func connectOverTCP() throws -> Int32 {
        // listen(2) binds the socket to a free port.
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        try #require(listen(listener, 1) == 0)
        let client = try TLSClient.connect(to: #require(localPort(of: listener)), receiveBuffer: 4096)
        take(acceptConnection(from: listener).descriptor)
        return client
    }

    private func take(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        relay.take(descriptor, peer: "192.0.2.7")
    }

    /// Connects a client, and completes its TLS handshake.
    ///
    /// - Parameter descriptor: the client's end of a connection; nil for a new socket pair.
    func client(_ descriptor: Int32? = nil, identity: String? = nil, resuming earlier: TLSClient? = nil) throws
        -> TLSClient
    {
        try TLSClient(
            descriptor: descriptor ?? connect(),
            authorities: certificates.path("ca.pem"),
            identity: identity.map(certificates.path),
            resuming: earlier
        )
    }

    /// Returns the server's end of the next connection.
    func server() throws -> (descriptor: Int32, peek: ProtocolPeek, origin: ConnectionOrigin) {
        try waitUntil("a connection is served") { served.withLock { !$0.isEmpty } }
        return served.withLock { $0.removeFirst() }
    }

    /// Returns both ends of a connection whose request the server has received.
    func pair(_ descriptor: Int32? = nil, request: String = "GET /v1/info HTTP/1.1\r\n") throws
        -> (client: TLSClient, server: Int32)
    {
        let client = try client(descriptor)
        try client.send(request)
        let server = try server().descriptor
        _ = try Self.receive(server, count: request.utf8.count)
        return (client, server)
    }

    static func receive(_ descriptor: Int32, count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var received = 0
        while received < count {
            let more = recv(descriptor, &bytes[received], count - received, 0)
            try #require(more > 0, "recv: \(errno)")
            received += more
        }
        return bytes
    }

    static func send(_ descriptor: Int32, _ bytes: some Sequence<UInt8>) throws {
        let bytes = Array(bytes)
        var sent = 0
        while sent < bytes.count {
            let more = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            try #require(more > 0, "send: \(errno)")
            sent += more
        }
    }

    /// Sends until no more bytes are accepted for 300 ms.
    ///
    /// - Returns: the number of bytes sent.
    static func fill(_ descriptor: Int32) -> Int {
        let piece = [UInt8](repeating: 7, count: 1024)
        var sent = 0
        while true {
            let count = Glibc.send(descriptor, piece, piece.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            sent += max(0, count)
            var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            if count < 0, poll(&entry, 1, 300) == 0 { return sent }
        }
    }
}
