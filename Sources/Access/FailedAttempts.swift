import Base

/// Throttles failed authentications by client address.
///
/// An address whose clients have failed `limit` times within a minute gets another answer until the minute is over.
/// Valid tokens are always accepted: behind a proxy, all clients have one address, and must not be able to lock each
/// other out. Guessing a token of 256 random bits is infeasible at any rate.
struct FailedAttempts: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// The period in which failures are counted, starting with the first one.
    static let period = Duration.seconds(60)

    /// Maximum number of keys that clients of an address may wait for within the period. More than one, so that a
    /// single client with a bad token does not block all others behind a proxy.
    private static let maximumWaits = 4

    /// Number of failures after which an address is refused.
    private let limit: Int
    private var failures: ExpiringTable<ClientAddress, Int>
    /// The keys that clients of an address wait for.
    private var waits: ExpiringTable<ClientAddress, [Wait]>

    private struct Wait: Sendable, Equatable {
        let id: String?
        let fetched: Instant?
    }

    /// - Parameter maximumAddresses: the maximum number of addresses whose failures are counted; a further one replaces
    ///   the oldest.
    init(limit: Int, maximumAddresses: Int) {
        self.limit = limit
        failures = ExpiringTable(lifetime: Self.period, capacity: maximumAddresses)
        waits = ExpiringTable(lifetime: Self.period, capacity: maximumAddresses)
    }

    /// Returns whether a token that matches no key may wait for the next keys, rather than count as a failure.
    ///
    /// After a provider has changed its key, all clients of an address wait for that key until the keys are fetched
    /// again. Therefore an address may wait for few keys within a minute, and for one fetch each; everything else is a
    /// failure.
    ///
    /// - Parameters:
    ///   - id: the key id of the token.
    ///   - fetched: when the keys were last fetched.
    mutating func mayWait(for id: String?, since fetched: Instant?, from address: String, at now: Instant) -> Bool {
        let source = ClientAddress(address)
        let wait = Wait(id: id, fetched: fetched)
        guard let known = waits.entry(source, at: now)?.value else {
            waits.insert(source, [wait], at: now)
            return true
        }
        if known.contains(wait) { return true }
        guard known.count < Self.maximumWaits, !known.contains(where: { $0.id == id }) else { return false }
        waits.update(source, known + [wait])
        return true
    }

    /// Records a failed authentication.
    ///
    /// - Parameter address: the client's IP address. All clients without one count as one address.
    /// - Returns: nil, or the seconds after which the client may try again.
    mutating func retryAfter(failureFrom address: String, at now: Instant) -> Int? {
        let source = ClientAddress(address)
        guard let failure = failures.entry(source, at: now) else {
            failures.insert(source, 1, at: now)
            return nil
        }
        guard failure.value < limit else {
            return max(1, Int(((failure.expires - now) / .seconds(1)).rounded(.up)))
        }
        failures.update(source, failure.value + 1)
        return nil
    }
}
