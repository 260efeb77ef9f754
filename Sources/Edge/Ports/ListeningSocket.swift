import Base
import Glibc

/// A TCP socket that accepts connections.
struct ListeningSocket {
    /// The reason why the socket can't listen.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The time for which the kernel holds back a connection that has not sent anything, in seconds.
    static let deferAcceptSeconds: Int32 = 5
    static let backlog: Int32 = 4096

    let descriptor: Int32
    /// The port that the socket listens on.
    let port: UInt16

    init(host: String, port: UInt16) throws(Failure) {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        var found: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(port), &hints, &found)
        guard code == 0, let addresses = found else {
            throw Failure(description: "cannot listen on \(host): \(String(cString: gai_strerror(code)))")
        }
        defer { freeaddrinfo(addresses) }
        var reason = ""
        for address in sequence(first: addresses, next: \.pointee.ai_next) {
            if let descriptor = Self.listen(on: address.pointee) {
                self.descriptor = descriptor
                self.port = localPort(of: descriptor) ?? port
                return
            }
            reason =
                errno == EADDRINUSE
                ? "the port is in use by another program; end it, or choose another port (0: any free one)"
                : errorText(errno)
        }
        throw Failure(description: "cannot listen on \(host):\(port): \(reason)")
    }

    private static func listen(on address: addrinfo) -> Int32? {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(address.ai_family, type, 0)
        guard descriptor >= 0 else { return nil }
        var on: Int32 = 1
        let size = socklen_t(MemoryLayout<Int32>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, size)
        // `::` also accepts IPv4, whatever the system's default.
        var off: Int32 = 0
        if address.ai_family == AF_INET6 {
            setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &off, size)
        }
        var seconds = deferAcceptSeconds
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_DEFER_ACCEPT, &seconds, size)
        guard bind(descriptor, address.ai_addr, address.ai_addrlen) == 0, Glibc.listen(descriptor, backlog) == 0 else {
            let code = errno
            close(descriptor)
            errno = code
            return nil
        }
        return descriptor
    }
}
