import Glibc

/// A failed system call.
struct SystemCallError: Error, CustomStringConvertible {
    let call: String
    let code: Int32

    var description: String { "\(call): \(errorText(code))" }
}

/// Creates a pipe that programs started by this process do not inherit.
func pipeClosedOnExec() throws -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw SystemCallError(call: "pipe", code: errno) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
}

extension Duration {
    /// Milliseconds for poll(2), rounded up so that a positive duration never becomes a busy loop.
    var pollTimeout: Int32 {
        guard self > .zero else { return 0 }
        return Int32(clamping: Int64((self / .milliseconds(1)).rounded(.up)))
    }
}

/// Returns the system's text for an errno value.
func errorText(_ code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 256)
    guard strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
    return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
}

/// Returns the port that a TCP socket is bound to; nil if the system can't report it.
func localPort(of descriptor: Int32) -> UInt16? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutableBytes(of: &storage) { bytes in
        guard let address = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self),
            getsockname(descriptor, address, &length) == 0
        else { return nil }
        // The port is the 16 bits after the family, for IPv4 and IPv6 alike.
        return UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self))
    }
}
