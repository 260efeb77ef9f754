import Dispatch
import Foundation
import Synchronization

/// Where log lines go. Safe to use from any thread.
final class LogOutput: Sendable {
    /// Maximum bytes of lines that wait; further ones are dropped.
    static let maximumQueued = 1 << 20
    private static let flushTime = DispatchTimeInterval.milliseconds(200)

    private let sink: @Sendable (String) -> Void
    private let queue = DispatchQueue(label: "log")
    private let state = Mutex((queued: 0, dropped: 0))

    /// - Parameter sink: writes a line, and may block.
    init(sink: @escaping @Sendable (String) -> Void) { self.sink = sink }

    /// Standard error.
    static let standardError = LogOutput { line in
        // There is nowhere left to report a failure.
        try? FileHandle.standardError.write(contentsOf: Data(line.utf8))
    }

    /// Writes a line, and waits until it is written.
    func write(_ line: String) { sink(line) }

    /// Writes a line later, in order, so that a request does not wait for the reader of the log.
    ///
    /// - Parameter onRoom: called after lines were dropped, with their number, when a line can be written again.
    func enqueue(_ line: String, onRoom: @escaping @Sendable (_ dropped: Int) -> Void) {
        let size = line.utf8.count
        let isQueued = state.withLock { state in
            guard state.queued + size <= Self.maximumQueued else {
                state.dropped += 1
                return false
            }
            state.queued += size
            return true
        }
        guard isQueued else { return }
        queue.async { [self] in
            sink(line)
            let dropped = state.withLock { state in
                state.queued -= size
                defer { state.dropped = 0 }
                return state.dropped
            }
            if dropped > 0 { onRoom(dropped) }
        }
    }

    /// Waits a moment for queued lines.
    func flush() {
        let group = DispatchGroup()
        queue.async(group: group) {}
        _ = group.wait(timeout: .now() + Self.flushTime)
    }
}
