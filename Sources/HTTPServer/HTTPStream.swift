import CMicroHTTPD
import Glibc
import Synchronization

/// The body of a streaming response. Writing does not block: bytes are sent at once while the socket has space, and
/// queued up to a limit otherwise.
///
/// A client that closes its connection, or only its sending side, closes the stream. A client that disappears without
/// closing is detected only when something is written, so a stream needs a heartbeat. A client that reads nothing, or
/// does not answer at all, for ``HTTPServer/Configuration/connectionTimeout`` while bytes are queued for it is
/// disconnected, at the next write at the latest.
///
/// libmicrohttpd sends the head and sets TCP_NODELAY, and then the connection is suspended until the stream ends: only
/// the stream sends on its socket, on the threads of its writers, and on the thread of the ``SocketWatch`` after the
/// socket was full. libmicrohttpd then ends the body or closes the connection. (If libmicrohttpd sent the body, it
/// would need to be resumed for each write, and resuming takes time proportional to the number of all suspended
/// connections.)
public final class HTTPStream: Sendable {
    /// The result of a write.
    public enum WriteResult: Sendable {
        /// The bytes are sent or queued.
        case queued
        /// The bytes do not fit into the queue now; none of them was queued. The handler of ``onRoom(_:)`` is called,
        /// unless the stream ends earlier.
        case full
        /// The stream has ended; nothing more will be sent.
        case closed
    }

    private enum Phase {
        /// libmicrohttpd sends the head.
        case starting
        /// The connection is suspended. If the socket is not full, nothing is queued.
        case open(SocketWatch.Entry, isFull: Bool)
        /// libmicrohttpd ends the body, or closes the connection if the stream is aborted. The entry is removed when
        /// the connection ends.
        case ending(SocketWatch.Entry?)
        case closed
    }

    private struct State {
        let connection: OpaquePointer
        var phase = Phase.starting
        var queue: StreamQueue
        /// No bytes are accepted; the body ends after the queued ones.
        var isFinished = false
        /// The connection must be cut without an end of the body.
        var isAborted = false
        var closeHandlers: [@Sendable () -> Void] = []
        var roomHandler: (@Sendable () -> Void)?
        /// Whether a write was refused and the handler has not been called since. True only while bytes are queued.
        var owesRoom = false

        var isClosed: Bool { if case .closed = phase { true } else { false } }
    }

    /// What must happen outside the lock.
    private struct Effects {
        var released = StreamQueue.Released()
        var roomHandler: (@Sendable () -> Void)?

        consuming func perform() {
            // Holders are released before free space is reported.
            released = StreamQueue.Released()
            roomHandler?()
        }
    }

    /// Invariant: the connection is suspended and resumed, and its socket is used, with the lock held; its thread takes
    /// the lock (`close`) before it releases the connection and closes the socket. Therefore neither of them nor the
    /// daemon is freed while a writer uses it.
    private let state: Mutex<State>

    /// The socket of the connection.
    private let descriptor: Int32
    private let watch: SocketWatch
    /// Maximum number of bytes that are queued for sending.
    private let limit: Int

    /// Whether the connection is cut if the server stops, so that the client does not treat the partial body as
    /// complete.
    let isAbortedAtStop: Bool

    /// - Parameter isChunked: whether libmicrohttpd announces chunks in the head.
    init(
        connection: OpaquePointer,
        descriptor: Int32,
        watch: SocketWatch,
        isChunked: Bool,
        limit: Int,
        isAbortedAtStop: Bool
    ) {
        // A pointer is a value; the invariant above defines which threads may use its target.
        nonisolated(unsafe) let initial = State(connection: connection, queue: StreamQueue(isChunked: isChunked))
        state = Mutex(initial)
        self.descriptor = descriptor
        self.watch = watch
        self.limit = limit
        self.isAbortedAtStop = isAbortedAtStop
    }

    /// Whether the client has disconnected, the server has stopped, the stream was aborted, or everything was sent
    /// after ``finish()``.
    public var isClosed: Bool { state.withLock { $0.isClosed || $0.isAborted } }

    /// Number of sent bytes.
    var sentBytes: Int { state.withLock(\.queue.sentBytes) }

    /// Sends or queues bytes, from any thread. They are sent in the order of the calls. A write larger than the whole
    /// queue (``HTTPServer/Configuration/streamQueueSize``) is accepted while nothing is queued.
    @discardableResult
    public func write(_ bytes: [UInt8]) -> WriteResult { write([bytes]) }

    /// Sends or queues parts, one after another, like ``write(_:)-([UInt8])``. Either all of them are accepted or none.
    ///
    /// - Parameter holder: released when the parts are sent or the stream has closed; immediately if they are not
    ///   accepted. It represents their memory.
    @discardableResult
    public func write(_ parts: [[UInt8]], holding holder: (any Sendable & AnyObject)? = nil) -> WriteResult {
        let count = parts.reduce(0) { $0 + $1.count }
        let (result, effects) = state.withLock { state -> (WriteResult, Effects) in
            guard !state.isClosed, !state.isFinished, !state.isAborted else { return (.closed, Effects()) }
            guard count > 0 else { return (.queued, Effects()) }
            guard state.queue.bytes == 0 || state.queue.bytes + count <= limit else {
                state.owesRoom = true
                return (.full, Effects())
            }
            state.queue.append(parts, holding: holder)
            return (.queued, send(&state))
        }
        effects.perform()
        return result
    }

    /// Ends the body after the queued bytes, from any thread.
    ///
    /// - Parameter last: bytes that are queued before, even if the queue is full.
    public func finish(with last: [UInt8] = []) {
        let effects = state.withLock { state in
            guard !state.isClosed, !state.isAborted else { return Effects() }
            if !last.isEmpty, !state.isFinished { state.queue.append([last]) }
            state.isFinished = true
            return send(&state)
        }
        effects.perform()
    }

    /// Discards queued bytes and cuts the connection, from any thread, so that the client detects that the body is
    /// incomplete. A finished stream can also be aborted, unless all of it is sent.
    public func abort() {
        let released = state.withLock { state in
            guard !state.isClosed else { return StreamQueue.Released() }
            state.isAborted = true
            returnConnection(&state)
            return state.queue.removeAll()
        }
        // Holders are released outside the lock.
        _ = consume released
    }

    /// Calls `handler` once when the stream has closed for any reason: on one of the server's threads, or immediately
    /// if it is already closed.
    public func onClose(_ handler: @escaping @Sendable () -> Void) {
        let isClosed = state.withLock { state in
            if !state.isClosed { state.closeHandlers.append(handler) }
            return state.isClosed
        }
        if isClosed { handler() }
    }

    /// Sets a handler that is called when at least half of the queue is free again after one or more writes returned
    /// ``WriteResult/full``. It is called on one of the server's threads, must not block, and may write. Set it once,
    /// before the first write.
    public func onRoom(_ handler: @escaping @Sendable () -> Void) {
        state.withLock { $0.roomHandler = handler }
    }
}

extension HTTPStream {
    /// Sends as much as the socket takes if the connection is suspended and the socket is not known to be full. If a
    /// finished stream is sent, returns the connection to libmicrohttpd.
    private func send(_ state: inout State) -> Effects {
        guard case .open(let entry, isFull: false) = state.phase else { return Effects() }
        let effects = sendFrames(&state)
        if state.isAborted || (state.queue.isEmpty && state.isFinished) {
            returnConnection(&state)
        } else if !state.queue.isEmpty {
            state.phase = .open(entry, isFull: true)
            watch.awaitSpace(entry)
        }
        return effects
    }

    /// Sends frames until everything is sent, the socket is full, or the connection has failed, which aborts the
    /// stream.
    private func sendFrames(_ state: inout State) -> Effects {
        var effects = Effects()
        sending: while !state.queue.isEmpty {
            switch state.queue.sendFrame(to: descriptor, &effects.released) {
            case .sent: continue
            case .full: break sending
            case .failed:
                state.isAborted = true
                break sending
            }
        }
        if state.owesRoom, state.queue.bytes <= limit / 2 {
            state.owesRoom = false
            if !state.isFinished, !state.isAborted { effects.roomHandler = state.roomHandler }
        }
        return effects
    }

    /// Resumes a suspended connection, so that libmicrohttpd ends it.
    private func returnConnection(_ state: inout State) {
        guard case .open(let entry, _) = state.phase else { return }
        state.phase = .ending(entry)
        MHD_resume_connection(state.connection)
    }

    private func handle(_ event: SocketWatch.Event) {
        guard case .hasSpace = event else { return abort() }
        let effects = state.withLock { state -> Effects in
            guard case .open(let entry, isFull: true) = state.phase else { return Effects() }
            state.phase = .open(entry, isFull: false)
            let effects = send(&state)
            if case .open(_, isFull: false) = state.phase { watch.awaitDeparture(entry) }
            return effects
        }
        effects.perform()
    }

    /// Called on the connection's thread when the head is sent, and after the connection was resumed. Suspends the
    /// connection, unless the stream has already ended.
    ///
    /// - Returns: the result of libmicrohttpd's content reader, which never provides bytes.
    func proceed() -> Int {
        let (result, effects) = state.withLock { state -> (Int, Effects) in
            guard case .starting = state.phase else {
                // Resumed: libmicrohttpd does not call this while the connection is suspended.
                return (state.isAborted ? Self.endWithError : Self.endOfStream, Effects())
            }
            // An answer that is complete and fits into the socket's buffer does not need the suspension.
            let effects = sendFrames(&state)
            if state.queue.isEmpty, state.isFinished, !state.isAborted {
                state.phase = .ending(nil)
                return (Self.endOfStream, effects)
            }
            guard !state.isAborted, let entry = watch.add(descriptor, { [self] in handle($0) }) else {
                state.isAborted = true
                state.phase = .ending(nil)
                return (Self.endWithError, effects)
            }
            MHD_suspend_connection(state.connection)
            let isFull = !state.queue.isEmpty
            state.phase = .open(entry, isFull: isFull)
            if isFull { watch.awaitSpace(entry) }
            return (0, effects)
        }
        effects.perform()
        return result
    }

    /// Called on the connection's thread when the connection has ended; its socket is still open.
    func close() {
        let (entry, handlers, released) = state.withLock { state in
            var watched: SocketWatch.Entry?
            if case .ending(let entry) = state.phase { watched = entry }
            if case .open(let entry, _) = state.phase { watched = entry }
            state.phase = .closed
            // Handlers often reference the stream.
            state.roomHandler = nil
            defer { state.closeHandlers = [] }
            return (watched, state.closeHandlers, state.queue.removeAll())
        }
        if let entry { watch.remove(entry) }
        // Holders are released outside the lock.
        _ = consume released
        for handler in handlers { handler() }
    }
}
