import CEpoll
import Dispatch
import Glibc
import Synchronization

/// Detects clients that close their connection while their answer is pending or streamed. libmicrohttpd does not detect
/// them: it does not poll suspended connections, and polls a stream only when something is written.
///
/// A client that closes only its sending side (FIN) counts as departed, too: the two cases cannot be distinguished.
final class DepartureWatch: Sendable {
    /// A watched descriptor, until `remove`.
    struct Entry {
        fileprivate let descriptor: Int32
        fileprivate let id: UInt64
    }

    private struct State {
        var lastID: UInt64 = 0
        /// The handler of each watched descriptor, by id. A descriptor's number can be reused; an id can't.
        var handlers: [UInt64: @Sendable () -> Void] = [:]
    }

    private let poller: Int32
    private let state = Mutex(State())
    /// Safe: Dispatch sources may be used from any thread.
    nonisolated(unsafe) private let source: any DispatchSourceRead

    /// Creates a watch; nil if the process has no descriptors left.
    init?() {
        let poller = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard poller >= 0 else { return nil }
        self.poller = poller
        let queue = DispatchQueue(label: "HTTPServer.DepartureWatch")
        source = DispatchSource.makeReadSource(fileDescriptor: poller, queue: queue)
        source.setEventHandler { [weak self] in self?.handleDepartures() }
        source.setCancelHandler { close(poller) }
        source.activate()
    }

    deinit { source.cancel() }

    /// Calls `handler` once, on a thread of the watch, when the client of `descriptor` has disconnected. It must not
    /// block.
    func add(_ descriptor: Int32, _ handler: @escaping @Sendable () -> Void) -> Entry {
        let id = state.withLock { state in
            state.lastID += 1
            state.handlers[state.lastID] = handler
            return state.lastID
        }
        let events = EPOLLRDHUP.rawValue | EPOLLONESHOT.rawValue
        var event = epoll_event(events: events, data: epoll_data_t(u64: id))
        epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event)
        return Entry(descriptor: descriptor, id: id)
    }

    /// Ends the watch. The descriptor must still be open.
    func remove(_ entry: Entry) {
        epoll_ctl(poller, EPOLL_CTL_DEL, entry.descriptor, nil)
        // The handler is released outside the lock.
        _ = state.withLock { $0.handlers.removeValue(forKey: entry.id) }
    }

    private func handleDepartures() {
        var events = Array(repeating: epoll_event(), count: 256)
        while case let count = Int(epoll_wait(poller, &events, Int32(events.count), 0)), count > 0 {
            for event in events.prefix(count) {
                state.withLock { $0.handlers.removeValue(forKey: event.data.u64) }?()
            }
        }
    }
}
