import DequeModule
import Synchronization

/// An open connection, or one that was open.
public final class WebSocketConnection: Sendable, Identifiable {
    /// A close that was asked for: code and reason of RFC 6455, 5.5.1.
    struct Close {
        var code: UInt16
        var reason: String
    }

    /// What the service thread finds in the queue.
    enum Next {
        case frame(WebSocketFrame)
        case close(Close)
        case nothing
    }

    private struct Outbox {
        var frames: Deque<WebSocketFrame> = []
        var bytes = 0
        var close: Close?
        var isOpen = true
        /// Whether the service thread knows that something waits here, and so needs no waking.
        var isScheduled = false
    }

    /// RFC 6455, 5.5: a control frame's payload is at most 125 bytes, of which the close code takes two.
    private static let maximumReasonLength = 123

    /// Unique within the server.
    public let id: UInt64

    private let outbox = Mutex(Outbox())
    private let mailbox: Mailbox
    private let counters: Counters
    private let frameLimit: Int
    private let byteLimit: Int

    init(id: UInt64, mailbox: Mailbox, counters: Counters, configuration: WebSocketServer.Configuration) {
        self.id = id
        self.mailbox = mailbox
        self.counters = counters
        frameLimit = configuration.sendQueueFrames
        byteLimit = configuration.sendQueueBytes
    }

    /// Whether messages are still taken. False from the first close on, whoever closes.
    public var isOpen: Bool {
        outbox.withLock { $0.isOpen }
    }

    /// Queues a message, from any thread and without blocking.
    ///
    /// False when the connection is closed or closing, or when its queue is full: then what waits is dropped and the
    /// connection closes with 1013, "try again later" in the IANA registry of close codes.
    @discardableResult
    public func send(_ frame: WebSocketFrame) -> Bool {
        enum Outcome { case refused, overflown, queued, queuedFirst }

        let outcome: Outcome = outbox.withLock { outbox in
            guard outbox.isOpen else { return .refused }
            let isFull =
                outbox.frames.count >= frameLimit
                || (outbox.bytes + frame.count > byteLimit && !outbox.frames.isEmpty)
            if isFull {
                outbox.frames.removeAll()
                outbox.bytes = 0
                outbox.isOpen = false
                outbox.isScheduled = true
                outbox.close = Close(code: 1013, reason: "send queue full")
                return .overflown
            }
            outbox.frames.append(frame)
            outbox.bytes += frame.count
            defer { outbox.isScheduled = true }
            return outbox.isScheduled ? .queued : .queuedFirst
        }
        switch outcome {
        case .refused:
            return false
        case .overflown:
            counters.update { $0.closedSlow += 1 }
            mailbox.schedule(self)
            return false
        case .queuedFirst:
            mailbox.schedule(self)
            return true
        case .queued:
            return true
        }
    }

    /// Closes the connection after what is queued, from any thread. The first close wins.
    ///
    /// `code` is 1000 to 1014 without the reserved 1004 to 1006, or 3000 to 4999 (RFC 6455, 7.4); another one becomes
    /// 1011. `reason` is cut after 123 bytes.
    public func close(code: UInt16, reason: String = "") {
        let isFirst = outbox.withLock { outbox in
            guard outbox.isOpen else { return false }
            outbox.isOpen = false
            outbox.isScheduled = true
            outbox.close = Close(
                code: Self.isSendable(code) ? code : 1011,
                reason: Self.clip(reason)
            )
            return true
        }
        if isFirst {
            mailbox.schedule(self)
        }
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

    /// The code of a close that waits in the queue.
    var pendingCloseCode: UInt16? {
        outbox.withLock { $0.close?.code }
    }

    func next() -> Next {
        outbox.withLock { outbox in
            if let frame = outbox.frames.popFirst() {
                outbox.bytes -= frame.count
                return .frame(frame)
            }
            if let close = outbox.close {
                return .close(close)
            }
            outbox.isScheduled = false
            return .nothing
        }
    }

    /// The connection is gone, or its closing is in the hands of libwebsockets.
    func shut() {
        outbox.withLock { outbox in
            outbox.isOpen = false
            outbox.frames.removeAll()
            outbox.bytes = 0
            outbox.close = nil
        }
    }
}
