import Glibc

/// A signal that threads can poll. It stays readable once it is raised.
///
/// The descriptors stay open as long as the object exists, so any thread that retains it may use them.
final class StopSignal: Sendable {
    /// The descriptor to poll.
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

    /// Blocks the thread until the signal is raised, for `limit` at most.
    func wait(for limit: Duration) {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&entry, 1, limit.pollTimeout)
    }
}
