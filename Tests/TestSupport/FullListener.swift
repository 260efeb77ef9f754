import Glibc
import Synchronization

/// A TCP port of 127.0.0.1 whose accept queue is full, so connect(2) waits for minutes. After ``close()``, waiting
/// connections are refused within seconds.
public final class FullListener: Sendable {
    /// The port that does not answer.
    public let port: UInt16
    private let descriptors: Mutex<[Int32]>

    /// Listens, and fills the accept queue.
    ///
    /// - Throws: ``TestSupportError`` if the system does not allow it.
    public init() throws {
        let listener = Self.socket()
        var address = FreePort.loopback(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(listener, generic, length) == 0 && listen(listener, 0) == 0
                    ? getsockname(listener, generic, &length) : -1
            }
        }
        guard result == 0 else { throw TestSupportError("no listener: errno \(errno)") }
        port = UInt16(bigEndian: address.sin_port)
        // The queue holds one connection more than the backlog; the others wait.
        let waiting = (0..<4).map { _ in
            let client = Self.socket()
            withUnsafePointer(to: &address) { pointer in
                _ = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(client, $0, length) }
            }
            return client
        }
        descriptors = Mutex([listener] + waiting)
    }

    private static func socket() -> Int32 {
        let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        return Glibc.socket(AF_INET, Int32(type), 0)
    }

    /// The number of connections that wait in connect(2).
    public var waiting: Int {
        get throws {
            // proc(5): the fields are number, local and remote address, state; state 2 is SYN_SENT. Foundation reads
            // only the beginning of such a file.
            guard let file = fopen("/proc/self/net/tcp", "r") else { throw TestSupportError("no /proc/self/net/tcp") }
            defer { fclose(file) }
            let digits = String(port, radix: 16, uppercase: true)
            let remote = "0100007F:" + String(repeating: "0", count: 4 - digits.count) + digits
            var (count, line) = (0, [CChar](repeating: 0, count: 512))
            while fgets(&line, Int32(line.count), file) != nil {
                let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
                let fields = text.split(separator: " ")
                if fields.count > 3, fields[2] == remote, fields[3] == "02" { count += 1 }
            }
            return count
        }
    }

    deinit { close() }

    /// Stops listening.
    public func close() {
        for descriptor in descriptors.withLock({ descriptors in
            defer { descriptors = [] }
            return descriptors
        }) { Glibc.close(descriptor) }
    }
}
