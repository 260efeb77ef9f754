import Glibc

/// Finds TCP ports without a listener, for servers that cannot bind port 0 themselves.
public enum FreePort {
    // Below the ports that Linux gives to outgoing connections and to sockets that bind port 0.
    private static let range = UInt16(10_000)..<32_768

    /// Returns a TCP port of 127.0.0.1 without a listener. It is the caller's until its process ends: no other test gets
    /// it, also while a server is restarted on it.
    ///
    /// - Throws: ``TestSupportError`` if no port is free.
    public static func tcp() throws -> UInt16 {
        for port in range.shuffled() where try reserve(port) {
            if try isFree(port) { return port }
        }
        throw TestSupportError("no TCP port is free")
    }

    /// Reserves a port among all test processes, by a name that the kernel frees when this process ends.
    private static func reserve(_ port: UInt16) throws -> Bool {
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw TestSupportError("socket: errno \(errno)") }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // A name in the abstract namespace begins with a zero byte.
        let name = Array("\0coaty-test-port-\(port)".utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
        let isReserved = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) == 0 }
        }
        if !isReserved { close(descriptor) }
        return isReserved
    }

    private static func isFree(_ port: UInt16) throws -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw TestSupportError("socket: errno \(errno)") }
        defer { close(descriptor) }
        var address = loopback(port: port)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    static func loopback(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}

/// An error in a test helper, described in words.
public struct TestSupportError: Error, CustomStringConvertible {
    /// One or more lines for the report of the failed test.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
