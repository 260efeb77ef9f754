import Foundation

/// The kernel's counts of the bytes that arrive at a TCP socket.
struct ReceiveBuffer {
    let socket: Int32

    #if os(Linux)
        /// `SO_MEMINFO`, which glibc does not define (asm-generic/socket.h).
        private static let memoryInfo: Int32 = 55
        /// Offsets in the kernel's `struct tcp_info` (linux/tcp.h), of which glibc declares only the first part.
        private static let lastDataReceived = 52
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

        private func info<Value: FixedWidthInteger>(_ value: (UnsafeRawBufferPointer) -> Value) -> Value? {
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
    #endif
}
