import Glibc

/// A signal that threads can poll. It stays readable from ``raise()`` to ``lower()``.
///
/// The descriptors stay open as long as the object exists, so any thread that retains it may use them.
package final class PollSignal: Sendable {
    /// The descriptor to poll.
    package let descriptor: Int32
    private let writing: Int32

    package init() throws {
        (descriptor, writing) = try pipeClosedOnExec()
        for end in [descriptor, writing] { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
    }

    deinit {
        close(descriptor)
        close(writing)
    }

    package func raise() {
        var byte: UInt8 = 1
        // A full pipe is readable, too.
        _ = write(writing, &byte, 1)
    }

    package func lower() {
        withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { bytes in
            while read(descriptor, bytes.baseAddress, bytes.count) > 0 {}
        }
    }

    /// Blocks the thread until the signal is raised, for `limit` at most.
    package func wait(for limit: Duration) {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&entry, 1, limit.pollTimeout)
    }
}
