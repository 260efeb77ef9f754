import Dispatch
import Foundation
import Synchronization

/// The output of log lines. Lines are queued: callers never block, and lines do not interleave. May be used from any
/// thread.
final class LogOutput: Sendable {
    /// Maximum number of bytes of queued lines, without lines about single requests. Further lines are dropped.
    static let maximumQueued = 1 << 20
    /// The same for lines about single requests, which any client can cause.
    static let maximumQueuedOfRequests = 1 << 20
    private static let flushTime = DispatchTimeInterval.milliseconds(200)

    private struct State {
        var queued = 0
        var queuedOfRequests = 0
        /// The lines that were dropped since the last one was written.
        var dropped = 0
    }

    private let sink: @Sendable (String) -> Void
    private let queue = DispatchQueue(label: "log")
    private let state = Mutex(State())
    private let allDropped = Atomic(0)

    /// - Parameter sink: writes a line, and may block.
    init(sink: @escaping @Sendable (String) -> Void) { self.sink = sink }

    /// Standard error.
    static let standardError = LogOutput { line in
        // There is nowhere left to report a failure.
        try? FileHandle.standardError.write(contentsOf: Data(line.utf8))
    }

    /// The number of lines that were dropped.
    var dropped: Int { allDropped.load(ordering: .relaxed) }

    /// Writes a line soon, in order.
    ///
    /// - Parameter report: returns the line about a number of dropped lines. It follows the next written line, and is
    ///   never dropped.
    func write(_ line: String, isOfRequest: Bool, report: @escaping @Sendable (_ dropped: Int) -> String) {
        let size = line.utf8.count
        let place: any WritableKeyPath<State, Int> & Sendable = isOfRequest ? \.queuedOfRequests : \.queued
        let maximum = isOfRequest ? Self.maximumQueuedOfRequests : Self.maximumQueued
        let isQueued = state.withLock { state in
            guard state[keyPath: place] + size <= maximum else {
                state.dropped += 1
                return false
            }
            state[keyPath: place] += size
            return true
        }
        guard isQueued else {
            allDropped.add(1, ordering: .relaxed)
            return
        }
        queue.async { [self] in
            sink(line)
            let dropped = state.withLock { state in
                state[keyPath: place] -= size
                defer { state.dropped = 0 }
                return state.dropped
            }
            if dropped > 0 { sink(report(dropped)) }
        }
    }

    /// Waits a moment for queued lines.
    func flush() {
        let group = DispatchGroup()
        queue.async(group: group) {}
        _ = group.wait(timeout: .now() + Self.flushTime)
    }
}
