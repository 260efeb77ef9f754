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
