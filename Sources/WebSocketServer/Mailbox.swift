import CWebSockets
import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The messages from other threads to the service thread.
///
/// Wake-ups are coalesced: the service thread is woken only by the first message, and takes messages until none is
/// left.
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
    // called under the lock `wakeable`, which also guards the pointer's removal, which precedes the destruction of the
    // context.
    struct Wakeable: @unchecked Sendable {
        var context: OpaquePointer
    }

    private struct State {
        var contents = Contents()
        var isOpen = false
        /// Whether the service thread takes the messages without being woken.
        var isAwake = false

        /// Returns whether the service thread must be woken.
        mutating func needsWaking() -> Bool {
            defer { isAwake = isAwake || isOpen }
            return isOpen && !isAwake
        }
    }

    private let maximumArrivals: Int
    private let state = Mutex(State())
    /// Has its own lock, so that the service thread can take messages during the system call that wakes it.
    private let wakeable = Mutex<Wakeable?>(nil)

    /// - Parameter maximumArrivals: maximum number of queued descriptors for the service thread.
    init(maximumArrivals: Int) { self.maximumArrivals = maximumArrivals }

    /// Whether there is a service thread that reads the mailbox.
    var isOpen: Bool {
        state.withLock(\.isOpen)
    }

    /// Queues a descriptor for the service thread.
    ///
    /// - Returns: a descriptor that the service thread does not get: the given one if there is no such thread; the
    ///   oldest one if too many are queued.
    func adopt(_ arrival: Arrival) -> Int32? {
        let (surplus, needsWaking): (Int32?, Bool) = state.withLock { state in
            guard state.isOpen else { return (arrival.descriptor, false) }
            var surplus: Arrival?
            if state.contents.arrivals.count >= maximumArrivals {
                surplus = state.contents.arrivals.removeFirst()
            }
            state.contents.arrivals.append(arrival)
            return (surplus?.descriptor, state.needsWaking())
        }
        if needsWaking { wake() }
        return surplus
    }

    func schedule(_ connection: WebSocketConnection) {
        let needsWaking = state.withLock { state in
            guard state.isOpen else { return false }
            state.contents.connections.append(connection)
            return state.needsWaking()
        }
        if needsWaking { wake() }
    }

    /// Advances the phase; never back.
    func advance(to phase: Phase) {
        let needsWaking = state.withLock { state in
            guard phase > state.contents.phase else { return false }
            state.contents.phase = phase
            return state.needsWaking()
        }
        if needsWaking { wake() }
    }

    private func wake() { wakeable.withLock { $0.map { lws_cancel_service($0.context) } } }

    // MARK: Service thread

    func open(_ wakeable: Wakeable) {
        self.wakeable.withLock { $0 = wakeable }
        let needsWaking = state.withLock { state in
            state.isOpen = true
            return state.needsWaking()
        }
        if needsWaking { wake() }
    }

    /// Replaces `contents`, which must have been handled, by the messages since the last call.
    ///
    /// - Returns: false if there are none. Then the next message wakes the service thread.
    func take(into contents: inout Contents) -> Bool {
        // Two arrays are exchanged rather than allocated again.
        contents.arrivals.removeAll(keepingCapacity: true)
        contents.connections.removeAll(keepingCapacity: true)
        return state.withLock { state in
            let isEmpty =
                state.contents.arrivals.isEmpty && state.contents.connections.isEmpty
                && state.contents.phase == contents.phase
            state.isAwake = !isEmpty
            guard !isEmpty else { return false }
            swap(&contents, &state.contents)
            state.contents.phase = contents.phase
            return true
        }
    }

    /// Closes the mailbox: from now on, descriptors are closed and the service thread is not woken.
    func shut() {
        let leftover = state.withLock { state in
            state.isOpen = false
            defer { state.contents = Contents() }
            return state.contents.arrivals
        }
        wakeable.withLock { $0 = nil }
        for arrival in leftover {
            close(arrival.descriptor)
        }
    }
}
