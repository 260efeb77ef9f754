import CMicroHTTPD
import Synchronization

/// A suspended request without a response.
public final class PendingResponse: Sendable {
    /// The answer to a request.
    enum Answer: Sendable {
        case response(HTTPResponse)
        case stream(status: Int, headers: [(name: String, value: String)], @Sendable (HTTPStream) -> Void)
    }

    /// The result for the connection's thread.
    enum Outcome {
        case answer(Answer)
        /// No answer yet.
        case nothing
        /// The client has disconnected.
        case departed
    }

    private enum Phase {
        /// The connection is not suspended yet.
        case new(connection: OpaquePointer)
        /// The connection is suspended.
        case waiting(connection: OpaquePointer)
        /// The connection is resumed, or was never suspended; its thread will take the answer.
        case ready(Answer)
        /// The answer was taken.
        case ended
        /// The client disconnected before there was an answer.
        case departed
    }

    private struct State {
        var phase: Phase
        /// Nil once there is an answer.
        var departureHandler: (@Sendable () -> Void)?
    }

    /// Invariant: the connection is resumed with the lock held, and its thread takes the lock (`take`, `end`) before it
    /// releases the connection. Therefore neither the connection nor the daemon is freed while `complete` uses them.
    private let state: Mutex<State>

    init(connection: OpaquePointer) {
        // A pointer is a value; the invariant above defines which threads may use its target.
        nonisolated(unsafe) let initial = State(phase: .new(connection: connection))
        state = Mutex(initial)
    }

    /// Whether a response is still needed: `false` once it was completed, here or by the stopping server, or the client
    /// has disconnected.
    public var isWaiting: Bool {
        state.withLock {
            switch $0.phase {
            case .new, .waiting: true
            case .ready, .ended, .departed: false
            }
        }
    }

    /// Answers the request, from any thread. Only the first call counts.
    ///
    /// - Returns: whether this call has answered the request.
    @discardableResult
    public func complete(_ response: HTTPResponse) -> Bool { complete(with: .response(response)) }

    /// Answers the request with a response whose body is written over time, from any thread. Only the first call of
    /// this method and ``complete(_:)`` counts.
    ///
    /// The body has an end: if the server stops before ``HTTPStream/finish()``, the connection is cut, so that the
    /// client does not treat the partial body as complete.
    ///
    /// - Parameter start: called like that of ``HTTPReply/stream(status:headers:_:)``, on one of the server's threads.
    ///   It must not block.
    /// - Returns: whether this call has answered the request.
    @discardableResult
    public func complete(
        status: Int,
        headers: [(name: String, value: String)] = [],
        stream start: @escaping @Sendable (HTTPStream) -> Void
    ) -> Bool {
        complete(with: .stream(status: status, headers: headers, start))
    }

    /// Sets a handler that is called once if the client disconnects before the request is answered: on one of the
    /// server's threads, where it must not block, or immediately if the client has already disconnected. Set it once.
    public func onDeparture(_ handler: @escaping @Sendable () -> Void) {
        let hasDeparted = state.withLock { state in
            switch state.phase {
            case .new, .waiting: state.departureHandler = handler
            case .ready, .ended: break
            case .departed: return true
            }
            return false
        }
        if hasDeparted { handler() }
    }

    private func complete(with answer: Answer) -> Bool {
        // The handler is released outside the lock.
        let (isFirst, _) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
            switch state.phase {
            case .new:
                state.phase = .ready(answer)
            case .waiting(let connection):
                state.phase = .ready(answer)
                MHD_resume_connection(connection)
            case .ready, .ended, .departed:
                return (false, nil)
            }
            return (true, state.departureHandler.take())
        }
        return isFirst
    }

    /// Called when a ``SocketWatch`` has detected that the client has disconnected. The connection's thread will
    /// close the connection.
    func depart() {
        let handler = state.withLock { state -> (@Sendable () -> Void)? in
            guard case .waiting(let connection) = state.phase else { return nil }
            state.phase = .departed
            MHD_resume_connection(connection)
            return state.departureHandler.take()
        }
        handler?()
    }

    /// Suspends the connection, on its thread, unless the answer is already available.
    ///
    /// - Returns: whether it is suspended.
    func suspend() -> Bool {
        state.withLock { state in
            guard case .new(let connection) = state.phase else { return false }
            MHD_suspend_connection(connection)
            state.phase = .waiting(connection: connection)
            return true
        }
    }

    /// Returns the answer, once, on the connection's thread.
    func take() -> Outcome {
        state.withLock { state in
            switch state.phase {
            case .new, .waiting, .ended: return .nothing
            case .departed: return .departed
            case .ready(let answer):
                state.phase = .ended
                return .answer(answer)
            }
        }
    }

    /// Called on the connection's thread when the connection has ended.
    func end() {
        let handler = state.withLock { state -> (@Sendable () -> Void)? in
            switch state.phase {
            case .new, .waiting: state.phase = .departed
            case .ready: state.phase = .ended
            case .ended, .departed: break
            }
            return state.departureHandler.take()
        }
        handler?()
    }
}
