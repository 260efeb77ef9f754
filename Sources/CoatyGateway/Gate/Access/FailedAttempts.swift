/// Throttles failed authentications by client address.
///
/// An address whose clients have failed `limit` times within a minute gets another answer until the minute is over. Valid tokens are
/// accepted all the time: behind a proxy all clients have one address, and must not be able to lock each other out. Guessing a token
/// of 256 random bits is hopeless at any rate.
struct FailedAttempts: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Time in which failures are counted, from the first one on.
    static let period = Duration.seconds(60)

    /// Number of failures after which an address is refused.
    private let limit: Int
    private var failures: ExpiringTable<ClientAddress, Int>

    /// - Parameter maximumAddresses: the maximum number of addresses whose failures are counted; a further one replaces the oldest.
    init(limit: Int, maximumAddresses: Int) {
        self.limit = limit
        failures = ExpiringTable(lifetime: Self.period, capacity: maximumAddresses)
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
