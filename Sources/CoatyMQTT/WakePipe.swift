import Coaty
import Foundation
import Synchronization

/// Wakes a thread that sleeps in poll(2), at the price of a system call only where it sleeps.
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

    /// Called by anybody after the work has been queued.
    func wake() {
        guard !isAwake.exchange(true, ordering: .sequentiallyConsistent) else { return }
        var byte: UInt8 = 0
        // A full pipe wakes as well as one byte.
        _ = write(writeEnd, &byte, 1)
    }

    /// Called by the thread before it looks for work a last time and then sleeps: work queued later will wake it.
    func prepareToSleep() {
        isAwake.store(false, ordering: .sequentiallyConsistent)
    }

    /// Called by the thread after it slept.
    ///
    /// - Parameter isReadable: whether poll(2) says that there is something in the pipe.
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
