import CEpoll
import Dispatch
import Glibc
import Synchronization

/// Watches the sockets of suspended connections, which libmicrohttpd does not poll: while an answer is pending, and
/// while the writers of a stream send on the socket themselves.
///
/// A client that closes only its sending side (FIN) counts as departed, too: the two cases cannot be distinguished.
final class SocketWatch: Sendable {
    enum Event {
        /// The client has disconnected. No other event follows.
        case departed
        /// The socket has space, as requested with `awaitSpace`.
        case hasSpace
        /// The socket has had no space for the whole timeout.
        case stalled
    }

    typealias Handler = @Sendable (Event) -> Void

    /// A watched descriptor, until `remove`.
    struct Entry {
        fileprivate let descriptor: Int32
        fileprivate let id: UInt64
    }

    private struct Watched {
        let handler: Handler
        /// Since when space is awaited, by ``RequestTimes/now()``; nil if it is not awaited.
        var awaitsSpaceSince: Int?
    }

    private struct State {
        var lastID: UInt64 = 0
        /// The watched descriptors by id. A descriptor's number can be reused; an id can't.
        var watched: [UInt64: Watched] = [:]
    }

    private static let departure = EPOLLRDHUP.rawValue | EPOLLONESHOT.rawValue

    private let poller: Int32
    /// In nanoseconds.
    private let timeout: Int
    private let state = Mutex(State())
    /// Safe: Dispatch sources may be used from any thread.
    nonisolated(unsafe) private let source: any DispatchSourceRead
    /// Safe for the same reason.
    nonisolated(unsafe) private let timer: any DispatchSourceTimer

    /// Creates a watch; nil if the process has no descriptors left.
    ///
    /// - Parameter timeout: the time without space after which a socket has stalled, in seconds. It is checked four
    ///   times in this period.
    init?(timeout: Int) {
        let poller = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard poller >= 0 else { return nil }
        self.poller = poller
        self.timeout = timeout * 1_000_000_000
        let queue = DispatchQueue(label: "HTTPServer.SocketWatch")
        source = DispatchSource.makeReadSource(fileDescriptor: poller, queue: queue)
        timer = DispatchSource.makeTimerSource(queue: queue)
        source.setEventHandler { [weak self] in self?.handleEvents() }
        source.setCancelHandler { close(poller) }
        let period = DispatchTimeInterval.milliseconds(timeout * 250)
        timer.schedule(deadline: .now() + period, repeating: period, leeway: .milliseconds(timeout * 25))
        timer.setEventHandler { [weak self] in
            // After a pause of the process, sockets may have space that was not reported yet.
            self?.handleEvents()
            self?.reportStalls()
        }
        source.activate()
        timer.activate()
    }

    deinit {
        source.cancel()
        timer.cancel()
    }

    /// Starts to watch a socket. The handler is called on a thread of the watch, must not block, and may still be
    /// called while `remove` returns.
    ///
    /// - Returns: nil if the system has no memory for the watch.
    func add(_ descriptor: Int32, _ handler: @escaping Handler) -> Entry? {
        let id = state.withLock { state in
            state.lastID += 1
            state.watched[state.lastID] = Watched(handler: handler)
            return state.lastID
        }
        let entry = Entry(descriptor: descriptor, id: id)
        guard control(EPOLL_CTL_ADD, entry, Self.departure) else {
            forget(entry)
            return nil
        }
        return entry
    }

    /// Requests one `hasSpace`, or `stalled`. Follow `hasSpace` with this or with `awaitDeparture`.
    func awaitSpace(_ entry: Entry) {
        state.withLock { $0.watched[entry.id]?.awaitsSpaceSince = RequestTimes.now() }
        _ = control(EPOLL_CTL_MOD, entry, Self.departure | EPOLLOUT.rawValue)
    }

    /// Watches for `departed` only, again.
    func awaitDeparture(_ entry: Entry) { _ = control(EPOLL_CTL_MOD, entry, Self.departure) }

    /// Ends the watch. The descriptor must still be open.
    func remove(_ entry: Entry) {
        epoll_ctl(poller, EPOLL_CTL_DEL, entry.descriptor, nil)
        forget(entry)
    }

    private func forget(_ entry: Entry) {
        // The handler is released outside the lock.
        _ = state.withLock { $0.watched.removeValue(forKey: entry.id) }
    }

    private func control(_ operation: Int32, _ entry: Entry, _ events: UInt32) -> Bool {
        var event = epoll_event(events: events, data: epoll_data_t(u64: entry.id))
        return epoll_ctl(poller, operation, entry.descriptor, &event) == 0
    }

    private func handleEvents() {
        var events = Array(repeating: epoll_event(), count: 256)
        while case let count = Int(epoll_wait(poller, &events, Int32(events.count), 0)), count > 0 {
            for event in events.prefix(count) {
                let handler = state.withLock { state -> Handler? in
                    state.watched[event.data.u64]?.awaitsSpaceSince = nil
                    return state.watched[event.data.u64]?.handler
                }
                // Everything but space is an end of the connection: EPOLLRDHUP, EPOLLHUP, EPOLLERR.
                handler?(event.events == EPOLLOUT.rawValue ? .hasSpace : .departed)
            }
        }
    }

    private func reportStalls() {
        let time = RequestTimes.now() - timeout
        let handlers = state.withLock { state in
            let ids = state.watched.filter { $0.value.awaitsSpaceSince.map { $0 <= time } ?? false }.map(\.key)
            return ids.compactMap { id in
                state.watched[id]?.awaitsSpaceSince = nil
                return state.watched[id]?.handler
            }
        }
        for handler in handlers { handler(.stalled) }
    }
}
