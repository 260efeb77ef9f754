import CMicroHTTPD
import Synchronization

/// A suspended request that waits for its response.
public final class PendingResponse: Sendable {
    /// What a request is answered with.
    enum Answer: Sendable {
        case response(HTTPResponse)
        case stream(status: Int, headers: [(name: String, value: String)], @Sendable (HTTPStream) -> Void)
    }

    /// What the connection's thread finds.
    enum Outcome {
        case answer(Answer)
        /// Nothing yet.
        case nothing
        /// The client has gone.
        case departed
    }

    private enum Phase {
        /// The connection is not suspended yet.
        case new(connection: OpaquePointer)
        /// The connection is suspended.
        case waiting(connection: OpaquePointer)
        /// The connection is resumed, or was never suspended; its thread will take the answer.
        case ready(Answer)
        /// The answer is handed over.
        case ended
        /// The client went before there was an answer.
        case departed
    }

    private struct State {
        var phase: Phase
        /// Nil once there is an answer.
        var departureHandler: (@Sendable () -> Void)?
    }

    /// Invariant: the connection is resumed with the lock held, and its thread takes the lock (`take`, `end`) before it
    /// lets go of the connection. So neither the connection nor the daemon is freed while `complete` uses them.
    private let state: Mutex<State>

    init(connection: OpaquePointer) {
        // A pointer is a value; the invariant above says who may use what it points to.
        nonisolated(unsafe) let initial = State(phase: .new(connection: connection))
        state = Mutex(initial)
    }

    /// Whether a response is still wanted: `false` once it was completed, here or by the server when it stopped, or the client has gone.
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
    /// - Returns: Whether this call was the one that answered.
    @discardableResult
    public func complete(_ response: HTTPResponse) -> Bool { complete(with: .response(response)) }

    /// Answers the request with a response whose body is written as it comes into being, from any thread. Only the first call of
    /// this method and ``complete(_:)`` counts.
    ///
    /// The body has an end: if the server stops before ``HTTPStream/finish()``, the connection is cut, so that the client does not take
    /// the part for the whole.
    ///
    /// - Parameter start: Called as that of ``HTTPReply/stream(status:headers:_:)``, on one of the server's threads. It must not block.
    /// - Returns: Whether this call was the one that answered.
    @discardableResult
    public func complete(
        status: Int,
        headers: [(name: String, value: String)] = [],
        stream start: @escaping @Sendable (HTTPStream) -> Void
    ) -> Bool {
        complete(with: .stream(status: status, headers: headers, start))
    }

    /// Sets what is called once if the client goes before the request is answered: on one of the server's threads, which must not be
    /// blocked, or at once if it has gone already. Set once.
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

    /// The client has gone, as a ``DepartureWatch`` has seen. The connection's thread will close the connection.
    func depart() {
        let handler = state.withLock { state -> (@Sendable () -> Void)? in
            guard case .waiting(let connection) = state.phase else { return nil }
            state.phase = .departed
            MHD_resume_connection(connection)
            return state.departureHandler.take()
        }
        handler?()
    }

    /// Suspends the connection, on its thread, unless the answer is there already.
    ///
    /// - Returns: Whether it is suspended.
    func suspend() -> Bool {
        state.withLock { state in
            guard case .new(let connection) = state.phase else { return false }
            MHD_suspend_connection(connection)
            state.phase = .waiting(connection: connection)
            return true
        }
    }

    /// The answer, once, on the connection's thread.
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

    /// Says, on the connection's thread, that the connection is done with.
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
