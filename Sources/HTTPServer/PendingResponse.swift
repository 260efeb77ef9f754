import CMicroHTTPD
import Synchronization

/// A suspended request that waits for its response.
public final class PendingResponse: Sendable {
    private enum State {
        /// The connection is not suspended yet.
        case new(connection: OpaquePointer)
        /// The connection is suspended.
        case waiting(connection: OpaquePointer)
        /// The connection is resumed, or was never suspended; its thread will take the response.
        case ready(HTTPResponse)
        /// The response is handed over, or the connection is gone.
        case ended
    }

    /// Invariant: the connection is resumed with the lock held, and its thread takes the lock (`take`, `end`) before it
    /// lets go of the connection. So neither the connection nor the daemon is freed while `complete` uses them.
    private let state: Mutex<State>

    init(connection: OpaquePointer) {
        // A pointer is a value; the invariant above says who may use what it points to.
        nonisolated(unsafe) let initial = State.new(connection: connection)
        state = Mutex(initial)
    }

    /// Whether a response is still wanted: `false` once it was completed, here or by the server when it stopped.
    public var isWaiting: Bool {
        state.withLock {
            switch $0 {
            case .new, .waiting: true
            case .ready, .ended: false
            }
        }
    }

    /// Answers the request, from any thread. Only the first call counts.
    ///
    /// - Returns: Whether this call was the one that answered.
    @discardableResult
    public func complete(_ response: HTTPResponse) -> Bool {
        state.withLock { state in
            switch state {
            case .new:
                state = .ready(response)
            case .waiting(let connection):
                state = .ready(response)
                MHD_resume_connection(connection)
            case .ready, .ended:
                return false
            }
            return true
        }
    }

    /// Suspends the connection, on its thread, unless the response is there already.
    ///
    /// - Returns: Whether it is suspended.
    func suspend() -> Bool {
        state.withLock { state in
            guard case .new(let connection) = state else { return false }
            MHD_suspend_connection(connection)
            state = .waiting(connection: connection)
            return true
        }
    }

    /// The response, once, on the connection's thread.
    func take() -> HTTPResponse? {
        state.withLock { state in
            guard case .ready(let response) = state else { return nil }
            state = .ended
            return response
        }
    }

    /// Says, on the connection's thread, that the connection is done with.
    func end() {
        state.withLock { $0 = .ended }
    }
}
