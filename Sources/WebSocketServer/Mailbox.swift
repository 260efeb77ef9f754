import CWebSockets
import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The messages from other threads to the service thread.
///
/// Wake-ups are coalesced: the service thread takes all messages together, so it is woken only by the first one.
final class Mailbox: Sendable {
    /// The progress of a stop.
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

    // @unchecked: lws_cancel_service() is the only call that libwebsockets allows on a context from any thread. It is
    // called under the lock that also guards the pointer's removal, which precedes the destruction of the context.
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

    /// - Parameter maximumArrivals: maximum number of queued descriptors for the service thread.
    init(maximumArrivals: Int) { self.maximumArrivals = maximumArrivals }

    /// Whether there is a service thread that reads the mailbox.
    var isOpen: Bool {
        state.withLock { $0.wakeable != nil }
    }

    /// Queues a descriptor for the service thread.
    ///
    /// - Returns: a descriptor that the service thread does not get: the given one if there is no such thread; the
    ///   oldest one if too many are queued.
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

    /// Advances the phase; never back.
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

    /// Returns all messages since the last call.
    func take() -> Contents {
        state.withLock { state in
            let contents = state.contents
            state.contents.arrivals.removeAll()
            state.contents.connections.removeAll()
            state.isAwake = false
            return contents
        }
    }

    /// Closes the mailbox: from now on, descriptors are closed and the service thread is not woken.
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
