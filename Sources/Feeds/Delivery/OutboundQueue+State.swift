import Base
import Coaty
import DequeModule

extension OutboundQueue {
    /// Whether an item was held back because of the client's byte rate since the queues were last empty.
    enum Waiting {
        case no
        /// An item was held back, which is not yet counted.
        case uncounted
        case counted
    }

    /// The queues of a connection, and the account that they are charged to.
    struct State {
        /// The account of the client.
        var account: ClientAccount
        /// Counts the events, responses and replies of the connection until they are sent, including throttled events.
        var memory: MemoryAccount
        var replies: Deque<(frame: ServerFrame, id: String?, charge: Charge)> = []
        var replyBytes = 0
        var queues: [UInt64: SubscriptionQueue] = [:]
        /// The serials of the subscriptions and requests with an id. Ids are compared byte by byte.
        private(set) var serials: [WireName: UInt64] = [:]
        /// Serials of the subscriptions and requests with queued items, in round-robin order, except those in
        /// `replaying`.
        var ready: Deque<UInt64> = []
        /// Serials of the subscriptions with items of a snapshot or replay, in round-robin order. They come after
        /// `ready`.
        var replaying: Deque<UInt64> = []
        /// Serials of the subscriptions whose snapshot or replay must be read, in round-robin order. May contain
        /// closed ones.
        var unread: Deque<UInt64> = []
        /// Serials of the subscriptions that may have throttled events to release.
        var releasing: Deque<UInt64> = []
        /// Whether the connection had no space for a frame, and ``OutboundQueue/pump()`` was not called since.
        var isFull = false
        var isClosed = false
        /// The rate of bytes that may be sent to the client; nil if it is not limited.
        var rate: Rate?
        /// The place among the client's queues that are held back because of the rate; nil if this queue is not.
        var place: SendPlace?
        /// Whether the next frame may be written although other queues of the client are held back.
        var hasTurn = false
        var waiting = Waiting.no
        /// Bytes of events in all queues, including events that throttling holds back.
        var bytes = 0
        /// Bytes of responses in all queues.
        var responseBytes = 0
        var lastSerial: UInt64 = 0
        /// Events handed to the connection since it opened.
        var delivered = 0
        /// Events dropped since the connection opened.
        var dropped = 0
        /// Gaps that were queued because the client's filter was too expensive.
        var leftOut = 0
        /// The reason why the connection ends after the queued replies; nil while it stays open.
        var finishing: ConnectionEnd?
        /// The requests that the client may answer; nil if it can't answer over this connection.
        var rights: AnswerRights?

        init(_ account: ClientAccount) {
            self.account = account
            memory = account.connection()
        }

        /// Charges another account from now on. Queued items stay charged to the previous account.
        mutating func move(to account: ClientAccount) { (self.account, memory) = (account, account.connection()) }

        mutating func add(_ queue: SubscriptionQueue) {
            let subscription = queue.subscription
            queues[subscription.serial] = queue
            if let id = subscription.id { serials[WireName(id)] = subscription.serial }
        }

        mutating func removeQueue(_ subscription: ClientSubscription) -> SubscriptionQueue? {
            guard let queue = queues.removeValue(forKey: subscription.serial) else { return nil }
            forget(subscription)
            return queue
        }

        /// Frees the id of a subscription or request whose queue was removed.
        mutating func forget(_ subscription: ClientSubscription) {
            guard let id = subscription.id.map(WireName.init), serials[id] == subscription.serial else { return }
            serials[id] = nil
        }

        /// Returns the subscription or request with an id.
        func subscription(_ id: String) -> ClientSubscription? {
            serials[WireName(id)].flatMap { queues[$0]?.subscription }
        }

        /// The state of a queue that decides how an item is delivered.
        struct Condition {
            let hasEnded: Bool
            let isThrottled: Bool
            let isBehind: Bool

            /// - Parameter queue: not changed. Reading a value of a dictionary copies it, and a queue has many
            ///   references to count; a value that could be changed is read in place.
            fileprivate init(_ queue: inout SubscriptionQueue) {
                (hasEnded, isThrottled, isBehind) = (queue.end != nil, queue.throttle != nil, queue.isBehind)
            }
        }

        /// Returns the condition of a queue; nil if there is none.
        mutating func condition(of subscription: ClientSubscription) -> Condition? {
            queues.index(forKey: subscription.serial).map { Condition(&queues.values[$0]) }
        }

        /// Takes the source of the next subscription whose snapshot or replay must be read.
        mutating func takeSource() -> SubscriptionReading? {
            while let serial = unread.popFirst() {
                if let reading = queues[serial]?.takeSource(charging: memory) { return reading }
            }
            return nil
        }

        /// Permits the client to answer a request. Called before the frame is offered: once the connection has it, the
        /// client may answer at any moment.
        func permitAnswers(to item: QueuedItem) {
            if let request = item.request { rights?.insert(request) }
        }

        /// Puts a queue first in its round-robin order, because the connection had no space for its frame.
        mutating func prepend(_ queue: SubscriptionQueue) {
            if queue.isBehind {
                replaying.prepend(queue.subscription.serial)
            } else {
                ready.prepend(queue.subscription.serial)
            }
        }

        /// Puts a queue last in its round-robin order.
        mutating func append(_ queue: SubscriptionQueue) {
            if queue.isBehind {
                replaying.append(queue.subscription.serial)
            } else {
                ready.append(queue.subscription.serial)
            }
        }

        /// Whether a new event may be written immediately, because nothing that comes first is queued.
        var isIdle: Bool { !isFull && !isClosed && place == nil && replies.isEmpty && ready.isEmpty }

        /// Charges sent bytes to the client's byte rate.
        func spend(_ bytes: @autoclosure () -> Int) {
            if let rate { account.spend(.bytesOut, bytes(), at: rate) }
        }
    }
}
