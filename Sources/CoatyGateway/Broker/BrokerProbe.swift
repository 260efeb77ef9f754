import Base
import Glibc

/// Checks whether a broker accepts connections, by connecting like an MQTT client.
struct BrokerProbe {
    /// Maximum duration of one step of an attempt.
    static let limit = timeval(tv_sec: 0, tv_usec: 500_000)

    /// A unique id, short enough (23 characters) for every MQTT 3.1.1 broker.
    let clientID: String
    private let address: EmbeddedBroker.Address

    init(address: EmbeddedBroker.Address) {
        self.address = address
        clientID = "probe-" + String(UInt64.random(in: .min ... .max), radix: 16)
    }

    /// Returns whether a CONNECT was answered with an accepting CONNACK (MQTT 3.1.1, sections 3.1 and 3.2).
    func isAnswered() -> Bool {
        let id = Array(clientID.utf8)
        // "MQTT", level 4, clean session, keepalive 10 s.
        let variableHeader: [UInt8] = [0, 4, 0x4D, 0x51, 0x54, 0x54, 4, 0x02, 0, 10]
        let body = variableHeader + [0, UInt8(id.count)] + id
        let connect = [0x10, UInt8(body.count)] + body
        let disconnect: [UInt8] = [0xE0, 0]
        return address.withResolved { info in
            guard let descriptor = openSocket(info) else { return false }
            defer { close(descriptor) }
            var limit = Self.limit
            let size = socklen_t(MemoryLayout<timeval>.size)
            // The send timeout also limits connect(2).
            setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
            guard Glibc.connect(descriptor, info.ai_addr, info.ai_addrlen) == 0, send(connect, on: descriptor) else {
                return false
            }
            var reply: [UInt8] = [0, 0, 0, 0]
            guard recv(descriptor, &reply, reply.count, Int32(MSG_WAITALL)) == reply.count,
                reply[0] == 0x20, reply[3] == 0
            else { return false }
            return send(disconnect, on: descriptor)
        } ?? false
    }

    private func send(_ bytes: [UInt8], on descriptor: Int32) -> Bool {
        Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }
}

extension EmbeddedBroker.Address {
    /// The address for clients on this machine: they can't connect to a wildcard address.
    var forLocalClients: Self {
        switch host {
        case "0.0.0.0": Self(host: "127.0.0.1", port: port)
        case "::": Self(host: "::1", port: port)
        default: self
        }
    }

    /// Whether only this machine can reach the address.
    var isLoopback: Bool {
        host.hasPrefix("127.") || host == "::1" || host == "localhost"
    }

    /// Returns this address with port 0 replaced by a free port; nil if the port is taken.
    ///
    /// - Throws: ``EmbeddedBrokerError/cannotListen(_:reason:)``
    func freePort() throws -> Self? {
        var found = self
        var isBound = false
        var failure: Int32 = 0
        let isTaken = withResolved { info in
            guard let descriptor = openSocket(info) else {
                failure = errno
                return false
            }
            defer { close(descriptor) }
            // As in mosquitto: old connections in TIME_WAIT don't block the port, and IPv6 sockets accept only IPv6.
            var on: Int32 = 1
            let size = socklen_t(MemoryLayout<Int32>.size)
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, size)
            if info.ai_family == AF_INET6 { setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &on, size) }
            guard bind(descriptor, info.ai_addr, info.ai_addrlen) == 0, listen(descriptor, 1) == 0 else {
                failure = errno
                return failure == EADDRINUSE
            }
            isBound = true
            if found.port == 0, let port = localPort(of: descriptor) { found.port = port }
            return false
        }
        guard let isTaken else { throw EmbeddedBrokerError.cannotListen(self, reason: "unknown host") }
        if isTaken { return nil }
        guard isBound else { throw EmbeddedBrokerError.cannotListen(self, reason: errorText(failure)) }
        return found
    }

    /// Calls `body` for each address that the host resolves to, until a call returns true; nil if there is none.
    fileprivate func withResolved(_ body: (addrinfo) -> Bool) -> Bool? {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &list) == 0 else { return nil }
        defer { freeaddrinfo(list) }
        var next = list
        while let info = next?.pointee {
            if body(info) { return true }
            next = info.ai_next
        }
        return false
    }
}

private func openSocket(_ info: addrinfo) -> Int32? {
    let descriptor = socket(info.ai_family, info.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), info.ai_protocol)
    return descriptor >= 0 ? descriptor : nil
}
