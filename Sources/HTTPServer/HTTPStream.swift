import CMicroHTTPD
import Synchronization

/// The body of a streaming response. Writing does not block: bytes are queued up to a limit, and sent by the server's
/// threads as fast as the client reads.
///
/// A client that closes its connection, or only its sending side, closes the stream. A client that disappears without
/// closing is detected only when something is written, so a stream needs a heartbeat. A client that reads nothing, or
/// does not answer at all, for ``HTTPServer/Configuration/connectionTimeout`` while bytes are queued for it is
/// disconnected, at the next write at the latest.
public final class HTTPStream: Sendable {
    /// The result of a write.
    public enum WriteResult: Sendable {
        /// The bytes are queued.
        case queued
        /// The bytes do not fit into the queue now; none of them was queued. The handler of ``onRoom(_:)`` is called,
        /// unless the stream ends earlier.
        case full
        /// The stream has ended; nothing more will be sent.
        case closed
    }

    private struct Chunk {
        let bytes: [UInt8]
        /// Released when the bytes are sent; set only for the last chunk of a write.
        let holder: (any Sendable & AnyObject)?
    }

    private struct State {
        let connection: OpaquePointer
        var chunks: [Chunk] = []
        /// The index of the first chunk that is not sent entirely, and the number of its sent bytes.
        var first = 0
        var offset = 0
        /// Number of bytes that are queued for sending.
        var queuedBytes = 0
        /// Number of bytes that were passed to libmicrohttpd.
        var sentBytes = 0
        var isSuspended = false
        var isFinished = false
        /// Whether the connection must be cut without an end of the body.
        var isAborted = false
        var isClosed = false
        var closeHandlers: [@Sendable () -> Void] = []
        var roomHandler: (@Sendable () -> Void)?
        /// Whether a write was refused and the handler has not been called since. True only while bytes are queued.
        var owesRoom = false

        /// Moves as many bytes as possible to `buffer`. Returns their number, and the holders of completely moved
        /// chunks.
        mutating func take(into buffer: UnsafeMutableRawBufferPointer) -> (Int, released: [any Sendable & AnyObject]) {
            var filled = 0
            var released: [any Sendable & AnyObject] = []
            while filled < buffer.count, first < chunks.count {
                let chunk = chunks[first]
                let count = min(buffer.count - filled, chunk.bytes.count - offset)
                chunk.bytes.withUnsafeBytes { bytes in
                    let part = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
                    UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]).copyMemory(from: part)
                }
                filled += count
                offset += count
                if offset == chunk.bytes.count {
                    if let holder = chunk.holder { released.append(holder) }
                    chunks[first] = Chunk(bytes: [], holder: nil)
                    first += 1
                    offset = 0
                }
            }
            queuedBytes -= filled
            sentBytes += filled
            if first * 2 >= chunks.count {
                chunks.removeFirst(first)
                first = 0
            }
            return (filled, released)
        }
    }

    /// Invariant: the connection is suspended and resumed with the lock held, and its thread takes the lock (`close`)
    /// before it releases the connection. Therefore neither the connection nor the daemon is freed while a writer uses
    /// it.
    private let state: Mutex<State>

    /// Maximum number of bytes that are queued for sending.
    private let limit: Int

    /// Whether the connection is cut if the server stops, so that the client does not treat the partial body as
    /// complete.
    let isAbortedAtStop: Bool

    init(connection: OpaquePointer, limit: Int, isAbortedAtStop: Bool) {
        // A pointer is a value; the invariant above defines which threads may use its target.
        nonisolated(unsafe) let initial = State(connection: connection)
        state = Mutex(initial)
        self.limit = limit
        self.isAbortedAtStop = isAbortedAtStop
    }

    /// Whether the client has disconnected, the server has stopped, the stream was aborted, or everything was sent
    /// after ``finish()``.
    public var isClosed: Bool { state.withLock { $0.isClosed || $0.isAborted } }

    /// Number of sent bytes.
    var sentBytes: Int { state.withLock(\.sentBytes) }

    /// Queues bytes, from any thread. They are sent in the order of the calls. A write larger than the whole queue
    /// (``HTTPServer/Configuration/streamQueueSize``) is accepted while nothing is queued.
    @discardableResult
    public func write(_ bytes: [UInt8]) -> WriteResult { write([bytes]) }

    /// Queues parts, which are sent one after another, like ``write(_:)-([UInt8])``. Either all of them are queued or
    /// none.
    ///
    /// - Parameter holder: released when the parts are sent or the stream has closed; immediately if they are not
    ///   queued. It represents their memory.
    @discardableResult
    public func write(_ parts: [[UInt8]], holding holder: (any Sendable & AnyObject)? = nil) -> WriteResult {
        let count = parts.reduce(0) { $0 + $1.count }
        return state.withLock { state in
            guard !state.isClosed, !state.isFinished, !state.isAborted else { return .closed }
            guard let last = parts.lastIndex(where: { !$0.isEmpty }) else { return .queued }
            guard state.queuedBytes == 0 || state.queuedBytes + count <= limit else {
                state.owesRoom = true
                return .full
            }
            for (index, bytes) in parts[...last].enumerated() where !bytes.isEmpty {
                state.chunks.append(Chunk(bytes: bytes, holder: index == last ? holder : nil))
            }
            state.queuedBytes += count
            Self.resume(&state)
            return .queued
        }
    }

    /// Ends the body after the queued bytes, from any thread.
    ///
    /// - Parameter last: bytes that are queued before, even if the queue is full.
    public func finish(with last: [UInt8] = []) {
        state.withLock { state in
            guard !state.isClosed, !state.isAborted else { return }
            if !last.isEmpty, !state.isFinished {
                state.chunks.append(Chunk(bytes: last, holder: nil))
                state.queuedBytes += last.count
            }
            state.isFinished = true
            Self.resume(&state)
        }
    }

    /// Discards queued bytes and cuts the connection, from any thread, so that the client detects that the body is
    /// incomplete. A finished stream can also be aborted, unless all of it is sent.
    public func abort() {
        let chunks = state.withLock { state in
            guard !state.isClosed else { return [Chunk]() }
            state.isAborted = true
            state.queuedBytes = 0
            Self.resume(&state)
            defer { (state.chunks, state.first, state.offset) = ([], 0, 0) }
            return state.chunks
        }
        // Holders are released outside the lock.
        _ = consume chunks
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

    private static func resume(_ state: inout State) {
        guard state.isSuspended else { return }
        state.isSuspended = false
        MHD_resume_connection(state.connection)
    }

    /// Fills `buffer` on the connection's thread. If there is nothing to send, suspends the connection and returns 0.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        // The compiler does not allow the lock's closure to use both the buffer and the state, but it allows a number.
        // Only this thread uses the buffer.
        let address = UInt(bitPattern: buffer.baseAddress)
        let size = buffer.count
        let (count, released, roomHandler) = state.withLock {
            state -> (Int, [any Sendable & AnyObject], (@Sendable () -> Void)?) in
            if state.isAborted { return (MHD_CONTENT_READER_END_WITH_ERROR_VALUE, [], nil) }
            guard state.queuedBytes > 0 else {
                if state.isFinished { return (MHD_CONTENT_READER_END_OF_STREAM_VALUE, [], nil) }
                state.isSuspended = true
                MHD_suspend_connection(state.connection)
                return (0, [], nil)
            }
            let (count, released) = state.take(
                into: UnsafeMutableRawBufferPointer(start: UnsafeMutableRawPointer(bitPattern: address), count: size)
            )
            guard state.owesRoom, state.queuedBytes <= limit / 2 else { return (count, released, nil) }
            state.owesRoom = false
            return (count, released, state.isFinished ? nil : state.roomHandler)
        }
        // Outside the lock, and before free space is reported.
        _ = consume released
        roomHandler?()
        return count
    }

    /// Called on the connection's thread when the connection has ended.
    func close() {
        let (handlers, chunks) = state.withLock { state in
            state.isClosed = true
            state.queuedBytes = 0
            // Handlers often reference the stream.
            state.roomHandler = nil
            defer {
                state.closeHandlers = []
                state.chunks = []
            }
            return (state.closeHandlers, state.chunks)
        }
        // Holders are released outside the lock.
        _ = consume chunks
        for handler in handlers { handler() }
    }
}

/// `MHD_CONTENT_READER_END_OF_STREAM`, a macro that is not imported.
private let MHD_CONTENT_READER_END_OF_STREAM_VALUE = -1
/// `MHD_CONTENT_READER_END_WITH_ERROR`, another macro that is not imported.
private let MHD_CONTENT_READER_END_WITH_ERROR_VALUE = -2

extension HTTPStream {
    /// Returns a response of libmicrohttpd that reads this stream and keeps it alive; `nil` if memory runs out.
    func makeResponse(headers: [(name: String, value: String)]) -> OpaquePointer? {
        let context = Unmanaged.passRetained(self)
        let response = MHD_create_response_from_callback(
            UInt64.max,
            0x4000,
            { context, _, buffer, size in
                guard let context, let buffer else { return MHD_CONTENT_READER_END_OF_STREAM_VALUE }
                let stream = Unmanaged<HTTPStream>.fromOpaque(context).takeUnretainedValue()
                return stream.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: size))
            },
            context.toOpaque(),
            { context in
                guard let context else { return }
                Unmanaged<HTTPStream>.fromOpaque(context).release()
            }
        )
        guard let response else {
            context.release()
            return nil
        }
        addHeaders(headers, to: response)
        return response
    }
}
