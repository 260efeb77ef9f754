import HTTPServer
import Synchronization

/// Sends a heartbeat on every event stream, so that a closed connection is noticed.
package final class Heartbeat: Sendable {
    /// The default time between two heartbeats.
    static let interval = Duration.seconds(15)

    private struct State {
        var streams: [UInt64: HTTPStream] = [:]
        var lastId: UInt64 = 0
        var isRunning = false
    }

    private let interval: Duration
    private let state = Mutex(State())

    package init(interval: Duration = Heartbeat.interval) {
        self.interval = interval
    }

    /// Sends heartbeats on a stream until the returned function is called.
    func add(_ stream: HTTPStream) -> @Sendable () -> Void {
        let (id, mustStart) = state.withLock { state in
            state.lastId += 1
            state.streams[state.lastId] = stream
            defer { state.isRunning = true }
            return (state.lastId, !state.isRunning)
        }
        if mustStart {
            Task { [weak self, interval] in
                repeat { try? await Task.sleep(for: interval) } while self?.sendHeartbeats() ?? false
            }
        }
        return { [weak self] in _ = self?.state.withLock { $0.streams.removeValue(forKey: id) } }
    }

    /// Asks each client to reconnect after a different time, because the gateway stops. EventSource obeys `retry`;
    /// other clients read the time in the notice. Then ends the streams.
    ///
    /// - Parameter delay: returns the time for one client, in milliseconds.
    package func announceStop(retryAfter delay: () -> Int) {
        for stream in state.withLock({ Array($0.streams.values) }) {
            let delay = delay()
            let notice = #"{"op":"notice","state":"stopping","retryAfter":\#(delay)}"#
            stream.finish(with: Array("retry: \(delay)\nevent: notice\ndata: \(notice)\n\n".utf8))
        }
    }

    /// Sends one heartbeat on every stream.
    ///
    /// - Returns: whether there are streams; if not, the loop must end.
    private func sendHeartbeats() -> Bool {
        let streams = state.withLock { state in
            state.isRunning = !state.streams.isEmpty
            return state.streams.values
        }
        // A full stream does not accept the heartbeat, and does not need it: its queued bytes already probe the
        // connection.
        for stream in streams { stream.write(EventStreamTransport.heartbeat) }
        return !streams.isEmpty
    }
}
