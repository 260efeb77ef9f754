import Synchronization

/// The versions that brokers have accepted, for all sessions of the process: only the first one has to try.
final class VersionMemory: Sendable {
    /// Maximum number of brokers. Beyond, those stored are forgotten.
    static let maximumBrokers = 100
    static let shared = VersionMemory()

    private let choices = Mutex<[BrokerAddress: VersionChoice]>([:])

    /// Returns the version of the next connection to a broker.
    func version(for address: BrokerAddress, now: ContinuousClock.Instant) -> MQTTVersion {
        choices.withLock { $0[address, default: VersionChoice()].version(now: now) }
    }

    /// Records the end of an attempt to connect; see ``VersionChoice/note(_:with:now:)``.
    func note(
        _ outcome: VersionChoice.Outcome,
        with version: MQTTVersion,
        for address: BrokerAddress,
        now: ContinuousClock.Instant
    ) -> Bool {
        choices.withLock { choices in
            if choices[address] == nil, choices.count >= Self.maximumBrokers { choices = [:] }
            return choices[address, default: VersionChoice()].note(outcome, with: version, now: now)
        }
    }
}
