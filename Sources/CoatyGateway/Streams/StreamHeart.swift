import HTTPServer
import Synchronization

/// Writes to all event streams from time to time: only so does the server notice that a client has gone.
final class StreamHeart: Sendable {
    /// How often a stream shows that it is alive, and finds out whether its client still is.
    static let interval = Duration.seconds(15)

    private struct State {
        var streams: [UInt64: HTTPStream] = [:]
        var lastId: UInt64 = 0
        var isBeating = false
    }

    private let interval: Duration
    private let state = Mutex(State())

    init(interval: Duration = StreamHeart.interval) {
        self.interval = interval
    }

    /// - Returns: what ends the beating for the stream.
    func add(_ stream: HTTPStream) -> @Sendable () -> Void {
        let (id, mustBegin) = state.withLock { state in
            state.lastId += 1
            state.streams[state.lastId] = stream
            defer { state.isBeating = true }
            return (state.lastId, !state.isBeating)
        }
        if mustBegin {
            Task { [weak self, interval] in
                repeat { try? await Task.sleep(for: interval) } while self?.beat() ?? false
            }
        }
        return { [weak self] in _ = self?.state.withLock { $0.streams.removeValue(forKey: id) } }
    }

    /// - Returns: whether there are streams.
    private func beat() -> Bool {
        let streams = state.withLock { state in
            state.isBeating = !state.streams.isEmpty
            return state.streams.values
        }
        // A stream that is full is written to anyway.
        for stream in streams { stream.write(EventStreamTransport.heartbeat) }
        return !streams.isEmpty
    }
}
