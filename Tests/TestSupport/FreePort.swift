import Glibc

/// Finds TCP ports without a listener.
public enum FreePort {
    /// Returns a TCP port of 127.0.0.1 that was free a moment ago.
    ///
    /// Another process may take it before the caller does. Let servers bind port 0 themselves if they can.
    ///
    /// - Throws: ``TestSupportError`` if the system provides no port.
    /// - Throws: ``TestSupportError`` if the system gives none.
    public static func tcp() throws -> UInt16 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw TestSupportError("socket: errno \(errno)") }
        defer { close(descriptor) }
        var address = loopback(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(descriptor, generic, length) == 0 ? getsockname(descriptor, generic, &length) : -1
            }
        }
        guard result == 0 else { throw TestSupportError("bind: errno \(errno)") }
        return UInt16(bigEndian: address.sin_port)
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
