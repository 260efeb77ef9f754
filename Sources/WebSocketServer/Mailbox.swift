import CWebSockets
import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What other threads leave for the service thread.
///
/// Wake-ups are coalesced: the service thread takes all that waits at once, so it is woken only by what comes first.
final class Mailbox: Sendable {
    /// How far a stop has come.
    enum Phase: Comparable {
        case running
        /// Connections are being closed; handshakes are refused.
        case closing
        /// The service thread ends now.
        case ending
    }

    /// A connection whose handshake has not begun.
    struct Arrival {
        let descriptor: Int32
        let peer: String
        let context: (any Sendable & AnyObject)?
    }

    struct Contents {
        var arrivals: [Arrival] = []
        var connections: [WebSocketConnection] = []
        var phase = Phase.running
    }

    // @unchecked: lws_cancel_service() is the one call that libwebsockets allows on a context from any thread. It is
    // made under the lock that also guards the pointer's removal, which comes before the context is destroyed.
    struct Wakeable: @unchecked Sendable {
        var context: OpaquePointer
    }

    private struct State {
        var contents = Contents()
        var isAwake = false
        var wakeable: Wakeable?

        mutating func wake() {
            guard let wakeable, !isAwake else { return }
            isAwake = true
            lws_cancel_service(wakeable.context)
        }
    }

    private let maximumArrivals: Int
    private let state = Mutex(State())

    /// - Parameter maximumArrivals: the most descriptors that wait for the service thread.
    init(maximumArrivals: Int) { self.maximumArrivals = maximumArrivals }

    /// Whether there is a service thread that takes what is left here.
    var isOpen: Bool {
        state.withLock { $0.wakeable != nil }
    }

    /// Takes a descriptor for the service thread.
    ///
    /// - Returns: a descriptor that the service thread does not get: the same where there is no such thread, and the one that has waited
    ///   longest where too many wait.
    func adopt(_ arrival: Arrival) -> Int32? {
        state.withLock { state in
            guard state.wakeable != nil else { return arrival.descriptor }
            var surplus: Arrival?
            if state.contents.arrivals.count >= maximumArrivals {
                surplus = state.contents.arrivals.removeFirst()
            }
            state.contents.arrivals.append(arrival)
            state.wake()
            return surplus?.descriptor
        }
    }

    func schedule(_ connection: WebSocketConnection) {
        state.withLock { state in
            guard state.wakeable != nil else { return }
            state.contents.connections.append(connection)
            state.wake()
        }
    }

    /// Only forward.
    func advance(to phase: Phase) {
        state.withLock { state in
            guard phase > state.contents.phase else { return }
            state.contents.phase = phase
            state.wake()
        }
    }

    // MARK: Service thread

    func open(_ wakeable: Wakeable) {
        state.withLock { state in
            state.wakeable = wakeable
            state.wake()
        }
    }

    /// All that came since the last call.
    func take() -> Contents {
        state.withLock { state in
            let contents = state.contents
            state.contents.arrivals.removeAll()
            state.contents.connections.removeAll()
            state.isAwake = false
            return contents
        }
    }

    /// From here on descriptors are closed and nobody wakes the service thread.
    func shut() {
        let leftover = state.withLock { state in
            state.wakeable = nil
            defer { state.contents = Contents() }
            return state.contents.arrivals
        }
        for arrival in leftover {
            close(arrival.descriptor)
        }
    }
}
