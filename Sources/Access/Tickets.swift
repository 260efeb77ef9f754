import DequeModule

/// Single-use tickets, which represent a principal where a browser can't send a token: in the URL of an EventSource or
/// WebSocket.
///
/// A URL may end up in a log, so a ticket is valid once, for a short time, and for pages of one origin.
struct Tickets: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Time within which a ticket must be used.
    static let lifetime = Duration.seconds(30)

    private struct Ticket: Sendable {
        let holder: Principal.Authenticated
        let origin: WebOrigin?
        let expires: Instant
    }

    /// Maximum number of unused tickets; a further one replaces the oldest.
    private let maximum: Int
    /// Maximum number of unused tickets of a subject; a further one replaces the oldest.
    private let maximumPerSubject: Int
    private var tickets: [TokenDigest: Ticket] = [:]
    /// The unused tickets of each subject, the oldest first.
    private var ofSubject: [Principal.Subject: Deque<TokenDigest>] = [:]
    /// All tickets in the order of issue, which is also that of expiry. Contains used ones, which are not in `tickets`.
    private var order: Deque<TokenDigest> = []

    init(maximum: Int, maximumPerSubject: Int) { (self.maximum, self.maximumPerSubject) = (maximum, maximumPerSubject) }

    /// Number of unused tickets, including expired ones that were not removed yet.
    var count: Int { tickets.count }

    /// Issues a ticket.
    ///
    /// - Parameter origin: the origin of the page that requests the ticket; nil for the gateway's own page, or a client
    ///   that is not a page.
    mutating func issue(
        for holder: Principal.Authenticated,
        origin: WebOrigin?,
        at now: Instant
    ) -> (ticket: String, expires: Instant) {
        removeExpired(at: now)
        let subject = holder.subject
        if let own = ofSubject[subject], own.count >= maximumPerSubject, let oldest = own.first { remove(oldest) }
        while tickets.count >= maximum, let oldest = order.popFirst() { remove(oldest) }
        let ticket = RandomSecret.text()
        let digest = TokenDigest(of: ticket)
        let expires = now + Self.lifetime
        tickets[digest] = Ticket(holder: holder, origin: origin, expires: expires)
        ofSubject[subject, default: []].append(digest)
        order.append(digest)
        if order.count > 2 * maximum { order.removeAll { tickets[$0] == nil } }
        return (ticket, expires)
    }

    /// Returns the principal of a ticket. The ticket is used up whatever the result.
    ///
    /// - Parameter origin: the origin of the page that uses the ticket; nil for the gateway's own page. An EventSource
    ///   of a page of the gateway sends no `Origin`, so a request without one counts as such.
    /// - Returns: nil if there is no such ticket, or it has expired or is for another origin.
    mutating func redeem(_ ticket: String, origin: WebOrigin?, at now: Instant) -> Principal.Authenticated? {
        removeExpired(at: now)
        guard let found = remove(TokenDigest(of: ticket)), found.origin == origin else { return nil }
        return found.holder
    }

    private mutating func removeExpired(at now: Instant) {
        while let oldest = order.first {
            if let ticket = tickets[oldest], ticket.expires > now { return }
            order.removeFirst()
            remove(oldest)
        }
    }

    @discardableResult
    private mutating func remove(_ digest: TokenDigest) -> Ticket? {
        guard let ticket = tickets.removeValue(forKey: digest) else { return nil }
        let subject = ticket.holder.subject
        ofSubject[subject]?.removeAll { $0 == digest }
        if ofSubject[subject]?.isEmpty == true { ofSubject[subject] = nil }
        return ticket
    }
}
