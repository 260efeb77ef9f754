import Glibc

/// Something to poll for: readable from the moment it is raised, for good.
///
/// The descriptors are open as long as the object lives, so any thread that holds it may use them.
final class StopSignal: Sendable {
    /// The end to poll.
    let descriptor: Int32
    private let writing: Int32

    init() throws {
        (descriptor, writing) = try pipeClosedOnExec()
    }

    deinit {
        close(descriptor)
        close(writing)
    }

    func raise() {
        var byte: UInt8 = 1
        _ = write(writing, &byte, 1)
    }

    /// Returns when the signal is raised or `limit` is over.
    func wait(for limit: Duration) {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&entry, 1, limit.pollTimeout)
    }
}

/// A pipe that programs started by this process do not inherit.
func pipeClosedOnExec() throws -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw EmbeddedBrokerError.system(call: "pipe", code: errno) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
}

extension Duration {
    /// Milliseconds for poll(2), rounded up so that nothing positive becomes a busy loop.
    var pollTimeout: Int32 {
        guard self > .zero else { return 0 }
        return Int32(clamping: Int64((self / .milliseconds(1)).rounded(.up)))
    }
}

/// What the system calls an errno value.
func errorText(_ code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 256)
    guard strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
    return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
}
