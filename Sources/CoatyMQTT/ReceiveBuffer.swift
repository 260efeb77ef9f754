import Foundation

/// The kernel's counts of the bytes that arrive at a TCP socket and leave it.
struct ReceiveBuffer {
    let socket: Int32

    #if os(Linux)
        /// `SO_MEMINFO`, which glibc does not define (asm-generic/socket.h).
        private static let memoryInfo: Int32 = 55
        /// Offsets in the kernel's `struct tcp_info` (linux/tcp.h), of which glibc declares only the first part.
        private static let lastDataReceived = 52
        private static let bytesAcknowledged = 120
        private static let bytesReceived = 128

        /// Whether the sender can't send more: the buffer, including the kernel's overhead, accepts little or nothing.
        ///
        /// The number of unread bytes does not show this: the kernel frees memory by packets, and offers a larger
        /// window late.
        var isFull: Bool {
            var values = [UInt32](repeating: 0, count: 9)
            var size = socklen_t(values.count * MemoryLayout<UInt32>.size)
            guard getsockopt(socket, SOL_SOCKET, Self.memoryInfo, &values, &size) == 0 else { return false }
            let (used, capacity) = (Int(values[0]), Int(values[1]))
            return used * 3 >= capacity * 2
        }

        /// The time since the last bytes arrived.
        var idle: Duration {
            .milliseconds(info { $0.loadUnaligned(fromByteOffset: Self.lastDataReceived, as: UInt32.self) } ?? 0)
        }

        /// Number of bytes that were read from the socket since it was connected; nil if the kernel does not report it.
        var bytesRead: Int? {
            var unread: Int32 = 0
            guard ioctl(socket, UInt(FIONREAD), &unread) == 0 else { return nil }
            return info { $0.loadUnaligned(fromByteOffset: Self.bytesReceived, as: UInt64.self) }
                .map { Int(clamping: $0) - Int(unread) }
        }

        /// The progress of the connection; nil if the kernel does not report it.
        var progress: TCPProgress? {
            info { bytes in
                TCPProgress(
                    idle: .milliseconds(bytes.loadUnaligned(fromByteOffset: Self.lastDataReceived, as: UInt32.self)),
                    arrived: Int(clamping: bytes.loadUnaligned(fromByteOffset: Self.bytesReceived, as: UInt64.self)),
                    acknowledged: Int(
                        clamping: bytes.loadUnaligned(fromByteOffset: Self.bytesAcknowledged, as: UInt64.self)
                    )
                )
            }
        }

        /// Number of sent bytes that the other end has not acknowledged.
        var unacknowledged: Int {
            var count: Int32 = 0
            return ioctl(socket, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
        }

        private func info<Value>(_ value: (UnsafeRawBufferPointer) -> Value) -> Value? {
            var bytes = [UInt8](repeating: 0, count: 256)
            var size = socklen_t(bytes.count)
            guard getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, &bytes, &size) == 0,
                Int(size) >= Self.bytesReceived + MemoryLayout<UInt64>.size
            else { return nil }
            return bytes.withUnsafeBytes(value)
        }
    #else
        var isFull: Bool { false }
        var idle: Duration { .zero }
        var bytesRead: Int? { nil }
        var progress: TCPProgress? { nil }
        var unacknowledged: Int { 0 }
    #endif
}

/// The progress of a TCP connection.
struct TCPProgress {
    /// The time since the last bytes arrived.
    var idle = Duration.zero
    /// Number of bytes that have arrived.
    var arrived = 0
    /// Number of sent bytes that the kernel at the other end has acknowledged.
    var acknowledged = 0
}
