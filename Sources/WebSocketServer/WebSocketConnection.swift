import DequeModule
import Synchronization

/// A frame in the queue of a connection.
struct QueuedFrame: Sendable {
    let frame: WebSocketFrame
    /// Released together with the frame.
    let holder: (any Sendable & AnyObject)?
}

/// A connection that is or was open.
public final class WebSocketConnection: Sendable, Identifiable {
    /// A requested close, with code and reason (RFC 6455, 5.5.1).
    struct Close {
        var code: UInt16
        var reason: String
    }

    /// The result of offering a frame.
    public enum Offer: Sendable {
        /// The frame will be sent.
        case queued
        /// The queue of the connection is full, and the frame was refused. ``WebSocketHandler/drained(_:)`` follows,
        /// unless the connection closes earlier.
        case full
        /// The connection is closed or closing.
        case closed
    }

    /// The next item of the queue for the service thread.
    enum Item {
        /// Frames that are sent together. They count as sent.
        ///
        /// - isLast: whether nothing is queued after them. Then the next frame schedules the connection again.
        case batch(isLast: Bool)
        /// A frame that is longer than a batch.
        case long(QueuedFrame)
        case close(Close)
        /// A long frame or a close, which stays in the queue until the socket is writable.
        case later
        case nothing
    }

    struct Next {
        let item: Item
        /// The code of a queued close, which may follow further frames.
        let closeCode: UInt16?
        /// Whether the handler must be notified that there is space again.
        let owesDrained: Bool
    }

    private struct Outbox {
        var frames: Deque<QueuedFrame> = []
        /// Payload bytes of `frames`, and of the long frame that is being sent.
        var bytes = 0
        /// Payload bytes of the frames that were sent.
        var sentBytes = 0
        var close: Close?
        var isOpen = true
        /// Whether the service thread knows that the queue is not empty, so that it need not be woken.
        var isScheduled = false
        /// Whether an offer was refused, and the handler has not yet been notified of free space. True only while
        /// frames are queued or a long one is being sent: the service thread checks it after each batch and long frame.
        var owesDrained = false

        /// Appends a frame. Returns whether the service thread must be woken.
        mutating func append(_ queued: QueuedFrame) -> Bool {
            frames.append(queued)
            bytes += queued.frame.count
            defer { isScheduled = true }
            return !isScheduled
        }

        /// Counts bytes of frames as sent.
        mutating func remove(_ count: Int) {
            bytes = max(0, bytes - count)
            sentBytes += count
        }

        mutating func pop(
            atMost limit: Int,
            _ count: Int,
            into batch: inout [QueuedFrame],
            isWritable: Bool
        ) -> Item {
            guard let first = frames.first else {
                if let close { return isWritable ? .close(close) : .later }
                isScheduled = false
                return .nothing
            }
            guard first.frame.count <= limit else {
                guard isWritable else { return .later }
                frames.removeFirst()
                return .long(first)
            }
            var total = 0
            while batch.count < count, let queued = frames.first, total + queued.frame.count <= limit {
                total += queued.frame.count
                batch.append(queued)
                frames.removeFirst()
            }
            remove(total)
            let isLast = frames.isEmpty && close == nil
            if isLast { isScheduled = false }
            return .batch(isLast: isLast)
        }
    }

    /// A control frame's payload is at most 125 bytes, of which the close code takes two (RFC 6455, 5.5).
    private static let maximumReasonLength = 123

    /// Unique within the server.
    public let id: UInt64

    private let outbox = Mutex(Outbox())
    private let mailbox: Mailbox
    private let frameLimit: Int
    private let byteLimit: Int

    /// The memory for incomplete messages that begin from now on; nil if it is not counted. Set it when the client is
    /// known.
    public var budget: (any WebSocketServer.ByteBudget)? {
        get { inboundBudget.withLock { $0 } }
        set { inboundBudget.withLock { $0 = newValue } }
    }

    private let inboundBudget = Mutex<(any WebSocketServer.ByteBudget)?>(nil)

    init(
        id: UInt64,
        mailbox: Mailbox,
        configuration: WebSocketServer.Configuration
    ) {
        self.id = id
        self.mailbox = mailbox
        frameLimit = max(1, configuration.offerQueueFrames)
        byteLimit = max(0, configuration.offerQueueBytes)
    }

    /// Number of payload bytes of the sent messages.
    public var sentBytes: Int { outbox.withLock(\.sentBytes) }

    /// Whether messages are still accepted. False from the first close on, whichever side closes.
    public var isOpen: Bool {
        outbox.withLock { $0.isOpen }
    }

    /// Queues a message unless the queue is full (``WebSocketServer/Configuration/offerQueueFrames`` and
    /// ``WebSocketServer/Configuration/offerQueueBytes``), from any thread and without blocking. The caller keeps
    /// frames that were refused.
    ///
    /// - Parameter holder: released when the frame is sent or the connection has ended; immediately if the frame is
    ///   refused. It represents the memory of the frame.
    public func offer(_ frame: WebSocketFrame, holding holder: (any Sendable & AnyObject)? = nil) -> Offer {
        offer(CollectionOfOne(frame), holding: holder).answer
    }

    /// Queues the first of some messages, as many as fit, like ``offer(_:holding:)-(WebSocketFrame,_)``. The queue is
    /// locked only once.
    ///
    /// - Parameter holder: released when all queued messages are sent or the connection has ended.
    /// - Returns: the number of queued messages, and `queued` if these are all; otherwise the reason why the next one
    ///   is not queued.
    public func offer(
        _ frames: some Collection<WebSocketFrame>,
        holding holder: (any Sendable & AnyObject)? = nil
    ) -> (number: Int, answer: Offer) {
        let (number, answer, isFirst): (Int, Offer, Bool) = outbox.withLock { outbox in
            guard outbox.isOpen else { return (0, .closed, false) }
            var (number, isFirst) = (0, false)
            for frame in frames {
                let isLong = outbox.bytes > 0 && outbox.bytes + frame.count > byteLimit
                if isLong || outbox.frames.count >= frameLimit {
                    outbox.owesDrained = true
                    return (number, .full, isFirst)
                }
                if outbox.append(QueuedFrame(frame: frame, holder: holder)) { isFirst = true }
                number += 1
            }
            return (number, .queued, isFirst)
        }
        if isFirst {
            mailbox.schedule(self)
        }
        return (number, answer)
    }

    /// Closes the connection after the queued frames, from any thread. The first close wins.
    ///
    /// `code` is 1000 to 1014 without the reserved 1004 to 1006, or 3000 to 4999 (RFC 6455, 7.4); another code is
    /// replaced by 1011. `reason` is cut after 123 bytes. With `discardsQueue`, the queued frames are discarded instead.
    public func close(code: UInt16, reason: String = "", discardsQueue: Bool = false) {
        var discarded: Deque<QueuedFrame> = []
        let isFirst = outbox.withLock { outbox in
            guard outbox.isOpen else { return false }
            if discardsQueue {
                swap(&discarded, &outbox.frames)
                outbox.bytes = 0
            }
            outbox.isOpen = false
            outbox.isScheduled = true
            outbox.owesDrained = false
            outbox.close = Close(
                code: Self.isSendable(code) ? code : 1011,
                reason: Self.clip(reason)
            )
            return true
        }
        if isFirst {
            mailbox.schedule(self)
        }
        // Holders are released outside the lock.
        _ = consume discarded
    }

    private static func isSendable(_ code: UInt16) -> Bool {
        switch code {
        case 1004...1006: false
        case 1000...1014, 3000...4999: true
        default: false
        }
    }

    private static func clip(_ reason: String) -> String {
        var clipped = ""
        var length = 0
        for scalar in reason.unicodeScalars {
            length += UTF8.width(scalar)
            if length > maximumReasonLength { break }
            clipped.unicodeScalars.append(scalar)
        }
        return clipped
    }

    // MARK: Service thread

    /// The code of a queued close.
    var pendingCloseCode: UInt16? {
        outbox.withLock { $0.close?.code }
    }

    /// Removes and returns the next item.
    ///
    /// One call takes all frames of a batch, because each takes the lock.
    ///
    /// - Parameters:
    ///   - sentBytes: payload bytes of the long frames that were sent completely since the last call.
    ///   - bytes: maximum number of payload bytes of a batch.
    ///   - count: maximum number of frames of a batch, at least one.
    ///   - batch: receives the frames of a batch; must be empty.
    ///   - isWritable: whether to return long frames and the close.
    func next(
        afterSending sentBytes: Int,
        atMost bytes: Int,
        _ count: Int,
        into batch: inout [QueuedFrame],
        isWritable: Bool
    ) -> Next {
        outbox.withLock { outbox in
            outbox.remove(sentBytes)
            let item = outbox.pop(atMost: bytes, count, into: &batch, isWritable: isWritable)
            let hasSpace = outbox.frames.count <= frameLimit / 2 && outbox.bytes <= byteLimit / 2
            let owesDrained = outbox.owesDrained && hasSpace
            if owesDrained { outbox.owesDrained = false }
            return Next(item: item, closeCode: outbox.close?.code, owesDrained: owesDrained)
        }
    }

    /// Called when the connection has ended, or libwebsockets has taken over its closing.
    func shut() {
        let frames = outbox.withLock { outbox in
            defer { outbox.frames = [] }
            outbox.isOpen = false
            outbox.bytes = 0
            outbox.owesDrained = false
            outbox.close = nil
            return outbox.frames
        }
        // Holders are released outside the lock.
        _ = frames
    }
}
