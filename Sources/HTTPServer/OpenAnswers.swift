import Dispatch
import Synchronization

/// The requests without a complete answer. ``HTTPServer/stop()`` must end them before libmicrohttpd stops, because it
/// aborts the process while a connection is suspended.
final class OpenAnswers: Sendable {
    private struct State {
        var isStopping = false
        var pending: [ObjectIdentifier: PendingResponse] = [:]
        var streams: [ObjectIdentifier: HTTPStream] = [:]
    }

    private let state = Mutex(State())
    /// Entered for every answer that has begun; left when it is sent or its connection has ended.
    private let begun = DispatchGroup()

    /// The number of suspended requests and of open streams.
    var counts: (pending: Int, streams: Int) { state.withLock { ($0.pending.count, $0.streams.count) } }

    /// Registers a request that is about to be suspended, unless `limit` requests are already suspended or the server
    /// stops.
    func add(_ pending: PendingResponse, limit: Int) -> Bool {
        state.withLock { state in
            guard !state.isStopping, state.pending.count < limit else { return false }
            state.pending[ObjectIdentifier(pending)] = pending
            return true
        }
    }

    /// Registers a stream, unless `limit` streams are already open or the server stops.
    func add(_ stream: HTTPStream, limit: Int) -> Bool {
        state.withLock { state in
            guard !state.isStopping, state.streams.count < limit else { return false }
            state.streams[ObjectIdentifier(stream)] = stream
            return true
        }
    }

    func remove(_ pending: PendingResponse) {
        state.withLock { _ = $0.pending.removeValue(forKey: ObjectIdentifier(pending)) }
    }

    func remove(_ stream: HTTPStream) {
        state.withLock { _ = $0.streams.removeValue(forKey: ObjectIdentifier(stream)) }
    }

    /// Records that an answer has begun; `ended` follows for each.
    func begin() { begun.enter() }

    /// Records that an answer is sent, or its connection has ended.
    func ended() { begun.leave() }

    /// Accepts no more requests, answers suspended ones with `response`, ends the streams, and waits until everything
    /// is sent.
    ///
    /// - Returns: whether everything was sent within `timeout`. If not, the other streams are aborted. In every case,
    ///   no connection is suspended any more.
    func endAll(with response: HTTPResponse, timeout: Duration) -> Bool {
        let (pending, streams) = state.withLock { state in
            state.isStopping = true
            return (Array(state.pending.values), Array(state.streams.values))
        }
        for pending in pending { pending.complete(response) }
        for stream in streams {
            if stream.isAbortedAtStop { stream.abort() } else { stream.finish() }
        }
        let (seconds, attoseconds) = timeout.components
        let nanoseconds = seconds * 1_000_000_000 + attoseconds / 1_000_000_000
        if begun.wait(timeout: .now() + .nanoseconds(Int(nanoseconds))) == .success { return true }
        for stream in streams { stream.abort() }
        return false
    }
}
