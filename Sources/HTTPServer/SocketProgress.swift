import CMicroHTTPD
import Glibc

/// Reports when the client of a connection has last sent bytes, if the server can't see it: the descriptor is not a TCP
/// socket, because its bytes are relayed. The context of ``HTTPServer/adopt(_:peer:context:)`` may conform to it.
public protocol ReceptionClock: AnyObject, Sendable {
    /// When the last bytes of the client arrived, in milliseconds of `CLOCK_MONOTONIC_COARSE`.
    var lastReception: Int { get }
}

/// What the kernel knows about the bytes of a socket.
enum SocketProgress {
    /// Offsets in the kernel's `struct tcp_info` (linux/tcp.h), of which glibc declares only the first part.
    private static let lastDataReceived = 52
    private static let bytesAcknowledged = 120

    /// Whether a socket is a TCP socket.
    static func isTCP(_ descriptor: Int32) -> Bool { silence(of: descriptor) != nil }

    /// Returns the milliseconds since the last bytes arrived at a TCP socket; nil for other sockets.
    static func silence(of descriptor: Int32) -> Int? {
        info(of: descriptor) { Int($0.loadUnaligned(fromByteOffset: lastDataReceived, as: UInt32.self)) }
    }

    /// Returns a number that changes when the client reads bytes that were sent; nil if all bytes are read, or if the
    /// kernel does not report it.
    static func unreadMark(of descriptor: Int32) -> UInt64? {
        var count: Int32 = 0
        guard ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0, count > 0 else { return nil }
        return info(of: descriptor) { $0.loadUnaligned(fromByteOffset: bytesAcknowledged, as: UInt64.self) }
            ?? UInt64(count)
    }

    /// Whether bytes have arrived that the server has not read.
    static func hasUnreadBytes(_ descriptor: Int32) -> Bool {
        var count: Int32 = 0
        return ioctl(descriptor, UInt(FIONREAD), &count) == 0 && count > 0
    }

    private static func info<Value>(of descriptor: Int32, _ value: (UnsafeRawBufferPointer) -> Value) -> Value? {
        withUnsafeTemporaryAllocation(byteCount: 256, alignment: 8) { bytes in
            var size = socklen_t(bytes.count)
            guard getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, bytes.baseAddress, &size) == 0,
                Int(size) >= bytesAcknowledged + MemoryLayout<UInt64>.size
            else { return nil }
            return value(UnsafeRawBufferPointer(bytes))
        }
    }
}
