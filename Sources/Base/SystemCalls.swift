package import Glibc

/// A failed system call.
package struct SystemCallError: Error, CustomStringConvertible {
    let call: String
    package let code: Int32

    package init(call: String, code: Int32) {
        self.call = call
        self.code = code
    }

    package var description: String { "\(call): \(errorText(code))" }
}

/// Creates a pipe that programs started by this process do not inherit.
package func pipeClosedOnExec() throws -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw SystemCallError(call: "pipe", code: errno) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
}

extension Duration {
    /// Milliseconds for poll(2), rounded up so that a positive duration never becomes a busy loop.
    package var pollTimeout: Int32 {
        guard self > .zero else { return 0 }
        return Int32(clamping: Int64((self / .milliseconds(1)).rounded(.up)))
    }
}

/// Returns the system's text for an errno value.
package func errorText(_ code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 256)
    guard strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
    return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
}

/// Returns the port that a TCP socket is bound to; nil if the system can't report it.
package func localPort(of descriptor: Int32) -> UInt16? {
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

/// Accepts a connection.
///
/// - Returns: the result of accept(2), which sets `errno`, and the numeric IP address of the peer.
package func acceptConnection(from listener: Int32) -> (descriptor: Int32, peer: String) {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let descriptor = withUnsafeMutablePointer(to: &storage) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { accept(listener, $0, &length) }
    }
    return (descriptor, descriptor < 0 ? "" : numericAddress(of: storage))
}

/// Returns the IP address in a socket address as text, an IPv4-mapped IPv6 address as IPv4; empty for other families.
package func numericAddress(of storage: sockaddr_storage) -> String {
    withUnsafeBytes(of: storage) { bytes in
        switch Int32(storage.ss_family) {
        case AF_INET:
            let address = bytes.load(as: sockaddr_in.self).sin_addr
            return withUnsafeBytes(of: address) { text(AF_INET, $0) }
        case AF_INET6:
            let address = bytes.load(as: sockaddr_in6.self).sin6_addr
            return withUnsafeBytes(of: address) { octets in
                let isMapped = octets[..<10].allSatisfy { $0 == 0 } && octets[10] == 0xff && octets[11] == 0xff
                return isMapped ? text(AF_INET, .init(rebasing: octets[12...])) : text(AF_INET6, octets)
            }
        default: return ""
        }
    }
}

private func text(_ family: Int32, _ address: UnsafeRawBufferPointer) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
        guard let start = buffer.baseAddress,
            inet_ntop(family, address.baseAddress, start, socklen_t(buffer.count)) != nil
        else { return "" }
        return String(cString: start)
    }
}
