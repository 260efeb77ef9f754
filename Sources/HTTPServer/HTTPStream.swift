import CMicroHTTPD
import Synchronization

/// The body of a streaming response. Whoever writes does not wait: bytes are queued up to a bound, and sent by the server's
/// threads as fast as the client reads.
///
/// A client that closes its connection, or only its sending side, closes the stream. One that has gone without a word is noticed
/// only when something is written, so a stream needs a heartbeat. A client that reads nothing, or does not answer at all, for
/// ``HTTPServer/Configuration/connectionTimeout`` while bytes wait for it is disconnected, at the next write at the latest.
public final class HTTPStream: Sendable {
    /// What became of a write.
    public enum WriteResult: Sendable {
        /// The bytes are queued.
        case queued
        /// The bytes do not fit into the queue now; nothing of them was queued. The handler of ``onRoom(_:)`` is called,
        /// unless the stream ends before.
        case full
        /// The stream has ended; nothing will be sent any more.
        case closed
    }

    private struct Chunk {
        let bytes: [UInt8]
        /// Released when the bytes are sent; only of the last chunk of a write.
        let holder: (any Sendable & AnyObject)?
    }

    private struct State {
        let connection: OpaquePointer
        var chunks: [Chunk] = []
        /// The index of the first chunk that is not sent entirely, and how much of it is sent.
        var first = 0
        var offset = 0
        /// How many bytes wait to be sent.
        var queuedBytes = 0
        /// How many bytes were given to libmicrohttpd.
        var sentBytes = 0
        var isSuspended = false
        var isFinished = false
        /// Whether the connection is to be cut without an end of the body.
        var isAborted = false
        var isClosed = false
        var closeHandlers: [@Sendable () -> Void] = []
        var roomHandler: (@Sendable () -> Void)?
        /// Whether a write was turned down and the handler has not been called since. True only while bytes wait.
        var owesRoom = false

        /// Moves as much as fits into `buffer` and returns how much that is, and the holders of what is moved whole.
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
    /// before it lets go of the connection. So neither the connection nor the daemon is freed while a writer uses it.
    private let state: Mutex<State>

    /// The most bytes that wait to be sent.
    private let limit: Int

    /// Whether the client must not take what it gets for the whole body if the server stops.
    let isAbortedAtStop: Bool

    init(connection: OpaquePointer, limit: Int, isAbortedAtStop: Bool) {
        // A pointer is a value; the invariant above says who may use what it points to.
        nonisolated(unsafe) let initial = State(connection: connection)
        state = Mutex(initial)
        self.limit = limit
        self.isAbortedAtStop = isAbortedAtStop
    }

    /// Whether the client has gone, the server has stopped, the stream was aborted, or everything was sent after ``finish()``.
    public var isClosed: Bool { state.withLock { $0.isClosed || $0.isAborted } }

    /// How many bytes were sent.
    var sentBytes: Int { state.withLock(\.sentBytes) }

    /// Queues bytes, from any thread. They are sent in the order of the calls. A write larger than the whole queue
    /// (``HTTPServer/Configuration/streamQueueSize``) is taken while nothing waits.
    @discardableResult
    public func write(_ bytes: [UInt8]) -> WriteResult { write([bytes]) }

    /// Queues parts, which are sent one after the other, as ``write(_:)-([UInt8])`` does. Either all of them are queued or none.
    ///
    /// - Parameter holder: released when the parts are sent or the stream has closed; at once if they are not queued. It stands for
    ///   their memory.
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

    /// Ends the body after what is queued, from any thread.
    public func finish() {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.isFinished = true
            Self.resume(&state)
        }
    }

    /// Drops what is queued and cuts the connection, from any thread, so that the client sees that the body is not complete. A finished
    /// stream is aborted, too, unless all of it is sent.
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

    /// Calls `handler` once when the stream has closed for whatever reason: on one of the server's threads, or at once
    /// when it is closed already.
    public func onClose(_ handler: @escaping @Sendable () -> Void) {
        let isClosed = state.withLock { state in
            if !state.isClosed { state.closeHandlers.append(handler) }
            return state.isClosed
        }
        if isClosed { handler() }
    }

    /// Sets what is called, once after each time that a write was ``WriteResult/full`` and however many were, when at least
    /// half of the queue is free again: on one of the server's threads, which must not be blocked. It may write. To be set
    /// once, before the first write.
    public func onRoom(_ handler: @escaping @Sendable () -> Void) {
        state.withLock { $0.roomHandler = handler }
    }

    private static func resume(_ state: inout State) {
        guard state.isSuspended else { return }
        state.isSuspended = false
        MHD_resume_connection(state.connection)
    }

    /// Fills `buffer` on the connection's thread. With nothing to send it suspends the connection and returns 0.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        // The lock's closure must not mix the buffer with the state; a number carries no such suspicion. The buffer is
        // this thread's alone.
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
        // Outside the lock, and before there is said to be room.
        _ = consume released
        roomHandler?()
        return count
    }

    /// Says, on the connection's thread, that the connection is done with.
    func close() {
        let (handlers, chunks) = state.withLock { state in
            state.isClosed = true
            state.queuedBytes = 0
            // Handlers tend to hold the stream.
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
/// `MHD_CONTENT_READER_END_WITH_ERROR`, the same.
private let MHD_CONTENT_READER_END_WITH_ERROR_VALUE = -2

extension HTTPStream {
    /// libmicrohttpd's response that reads this stream and holds it alive, or `nil` when memory is short.
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
