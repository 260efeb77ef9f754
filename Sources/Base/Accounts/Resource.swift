import Coaty
import Synchronization

/// A resource that clients share, and of which one client can only use a part.
package enum Resource: Int, CaseIterable, Sendable {
    case connections
    /// WebSockets that have not authenticated. Counted by address.
    case unauthenticated
    case subscriptions
    case feeds
    case requests
    /// Bytes queued for the broker. A publication counts at least ``Limits/outboxBytesPerPublication``.
    case outbox
    case identities
    /// Broker connections for feeds that have their own.
    case brokerConnections
    case ioNodes
    /// Objects that clients have advertised.
    case objects
    /// Bytes of the objects that the gateway advertises again after a reconnect. An object counts at least
    /// ``Limits/bytesPerKeptObject``.
    case keptObjects
    /// Queries of the object registry.
    case queries
    /// Requests with an `Idempotency-Key`, from their start until their answers are no longer kept.
    case idempotencyKeys

    /// The name in texts and, with hyphens, in settings.
    package var name: String {
        switch self {
        case .connections: "connections"
        case .unauthenticated: "unauthenticated connections"
        case .subscriptions: "subscriptions"
        case .feeds: "feeds"
        case .requests: "pending requests"
        case .outbox: "outbox bytes"
        case .identities: "identities"
        case .brokerConnections: "broker connections"
        case .ioNodes: "IO nodes"
        case .objects: "advertised objects"
        case .keptObjects: "kept object bytes"
        case .queries: "queries"
        case .idempotencyKeys: "idempotency keys"
        }
    }
}

/// A part of a resource that a client uses until this object is released. It keeps the client's account alive.
package final class Place: PublicationHolder {
    private let account: ClientAccount
    private let tally: Tally
    private let amount: Atomic<Int>
    private let top: Tally?

    init(of account: ClientAccount, _ tally: Tally, _ amount: Int, below top: Tally? = nil) {
        self.account = account
        self.tally = tally
        self.amount = Atomic(amount)
        self.top = top
    }

    var client: (any PublicationClient)? { account }

    deinit { tally.give(amount.load(ordering: .relaxed), below: top) }

    /// Changes the amount. Only one thread at a time may call it. Not for resources whose total is bounded elsewhere.
    ///
    /// - Returns: the reason why there is no room for more; then nothing changes.
    package func resize(to amount: Int) -> Tally.Exhaustion? {
        let current = self.amount.load(ordering: .relaxed)
        if amount > current {
            if let reason = tally.take(amount - current) { return reason }
        } else {
            tally.give(current - amount)
        }
        self.amount.store(amount, ordering: .relaxed)
        return nil
    }
}
