import Synchronization

/// Carries publications and subscriptions over a messaging protocol.
///
/// A binding connects, connects again, and moves bytes. What waits, in which order, and what is said after a reconnect is
/// the communication manager's business: the binding takes operations from the ``Link`` one by one.
public protocol Binding: Sendable {
    /// Starts to connect. From now on the binding connects again whenever the link is lost, until ``leave()``.
    func join(_ link: Link)

    /// Tells that ``Link/nextOperation()`` has something again. Called on any thread; must not block.
    func wake()

    /// Ends the link: carries out the operations that are left, of which the last is ``LinkOperation/disconnect``, and
    /// returns when the link is down, or after a time limit of the binding's own.
    func leave() async
}

/// What a binding does for the communication manager.
public enum LinkOperation: Sendable {
    /// Subscribe to topic filters, all in one packet; answer with ``Link/subscribed(_:refused:)`` when the broker has.
    case subscribe([String], ticket: UInt64)
    /// Unsubscribe from a topic filter.
    case unsubscribe(String)
    /// Publish; answer with ``Link/publicationSent()`` when it has been written, or ``Link/publicationRefused()``.
    case publish(Publication)
    /// Leave in an orderly way, so that the will is not published.
    case disconnect
}

/// Bytes for a topic.
public struct Publication: Sendable {
    /// The topic.
    public let topic: String
    /// The bytes.
    public let payload: [UInt8]
    /// Whether the broker keeps them for those who subscribe later.
    public let shouldRetain: Bool
    /// Whether the publication still makes sense after the link was lost.
    let isDeferrable: Bool
    /// How often the link was lost while this was being written.
    private(set) var attempts = 0

    init(topic: String, payload: [UInt8], shouldRetain: Bool = false, isDeferrable: Bool = true) {
        self.topic = topic
        self.payload = payload
        self.shouldRetain = shouldRetain
        self.isDeferrable = isDeferrable
    }

    func attempted() -> Publication {
        var publication = self
        publication.attempts += 1
        return publication
    }

    var size: Int { topic.utf8.count + payload.count }
}

/// What became of a publication.
public enum Delivery: Sendable, Hashable {
    /// It goes out now.
    case sent
    /// It goes out after the next connect.
    case deferred
}

/// One membership in the network, from `start` to `stop`, as its binding sees it.
///
/// All methods may be called on any thread, but those that report the link in the order in which things happened. A binding
/// keeps it as long as it has anything of it: a thread, a connection.
public final class Link: Sendable {
    /// The MQTT client id: `Coaty` and the first 18 hex digits of the identity's id, or of any where there is none.
    public let clientId: String
    /// What the broker publishes when the agent is lost; nil for who only observes.
    public let will: Publication?
    private let outbox: Outbox
    private let events: any LinkDelegate
    private let hasEnded = Atomic(false)

    /// - Parameter id: what the client id is made of.
    init(id: CoatyUUID, will: Publication?, outbox: Outbox, events: any LinkDelegate) {
        clientId = "Coaty" + id.string.replacing("-", with: "").prefix(18)
        self.will = will
        self.outbox = outbox
        self.events = events
    }

    /// Reports that the broker has accepted the connection.
    public func opened() { if !isOver { events.linkOpened() } }

    /// Reports that the connection is lost, or left.
    public func closed() { if !isOver { events.linkClosed() } }

    /// Reports a message that came in.
    public func received(topic: String, payload: [UInt8]) {
        if !isOver { events.received(topic: topic, payload: payload) }
    }

    /// Reports a message that came in and was dropped, because its payload is longer than the binding takes.
    public func receivedTooLong() { if !isOver { events.receivedTooLong() } }

    /// Reports that the broker has acknowledged the subscription of a ticket.
    ///
    /// - Parameter refused: the topic filters that it does not grant.
    public func subscribed(_ ticket: UInt64, refused: [String] = []) {
        if !isOver { events.subscribed(ticket, refused: refused) }
    }

    /// Takes the next thing to do; nil where there is none, then ``Binding/wake()`` tells of the next.
    ///
    /// To be called while the link is open, and for publications only as fast as they are sent.
    public func nextOperation() -> LinkOperation? { isOver ? nil : outbox.next() }

    /// Reports that the publication that was taken first, of those not yet reported, has been written.
    public func publicationSent() { if !isOver { outbox.publicationDone(isWritten: true) } }

    /// Reports that the publication that was taken first, of those not yet reported, can't be written and is given up.
    public func publicationRefused() { if !isOver { outbox.publicationDone(isWritten: false) } }

    /// Lets nothing pass any more: the outbox and the observers belong to the next membership.
    func end() { hasEnded.store(true, ordering: .releasing) }

    private var isOver: Bool { hasEnded.load(ordering: .acquiring) }
}

protocol LinkDelegate: AnyObject, Sendable {
    func linkOpened()
    func linkClosed()
    func subscribed(_ ticket: UInt64, refused: [String])
    func received(topic: String, payload: [UInt8])
    func receivedTooLong()
}

extension LinkDelegate {
    // Most count nothing.
    func receivedTooLong() {}
}
