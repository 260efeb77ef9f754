import Coaty
import Foundation
import Synchronization

/// Wakes a thread that waits in poll(2), with a system call only if the thread is waiting.
final class WakePipe: Sendable {
    let readEnd: Int32
    private let writeEnd: Int32
    private let isAwake = Atomic(true)

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw ConnectionError(.network, "pipe: \(String(cString: strerror(errno)))") }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        (readEnd, writeEnd) = (ends[0], ends[1])
    }

    /// Wakes the thread. Call it on any thread, after the work has been queued.
    func wake() {
        guard !isAwake.exchange(true, ordering: .sequentiallyConsistent) else { return }
        var byte: UInt8 = 0
        // A full pipe wakes the thread as well as one byte.
        _ = write(writeEnd, &byte, 1)
    }

    /// Prepares for waiting. Called by the thread before it checks for work a last time and then waits: work that is
    /// queued later will wake it.
    func prepareToSleep() {
        isAwake.store(false, ordering: .sequentiallyConsistent)
    }

    /// Empties the pipe. Called by the thread after it has waited.
    ///
    /// - Parameter isReadable: whether poll(2) reports that the pipe is readable.
    func didWake(isReadable: Bool) {
        isAwake.store(true, ordering: .sequentiallyConsistent)
        guard isReadable else { return }
        withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { bytes in
            while read(readEnd, bytes.baseAddress, bytes.count) > 0 {}
        }
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }
}
