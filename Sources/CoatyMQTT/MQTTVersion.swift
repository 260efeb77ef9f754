import CMosquitto

/// The version of MQTT towards the broker. Agents with different versions understand each other.
public enum MQTTVersion: String, Sendable, Hashable, CaseIterable {
    /// MQTT 5 if the broker supports it, otherwise MQTT 3.1.1.
    case auto
    /// MQTT 5, with which a broker states its limits and why it ends a connection.
    case v5 = "5"
    /// MQTT 3.1.1, which Coaty's reference agents use.
    case v311 = "3.1.1"
}

/// Chooses the version for each connection to one broker.
///
/// A broker that does not support MQTT 5 answers with CONNACK code 1 or 0x84, with a CONNACK of MQTT 3.1.1, or closes the
/// connection. After the last, MQTT 3.1.1 is used only if the broker accepts it: a broker that is just stopping also
/// closes connections. MQTT 5 is tried again after ``retryInterval``, because brokers are upgraded.
///
/// This is a value without side effects.
struct VersionChoice: Equatable {
    typealias Instant = ContinuousClock.Instant

    /// The end of an attempt to connect.
    enum Outcome {
        case accepted
        /// The broker has answered that it does not support the version, or in the form of another version.
        case refusedVersion
        /// The connection was closed before a CONNACK.
        case closed
        /// Something that does not depend on the version.
        case failed
    }

    /// Number of closed connections with MQTT 5 after which MQTT 3.1.1 is tried.
    static let maximumCloses = 2
    /// The time for which MQTT 3.1.1 is used.
    static let retryInterval = Duration.seconds(24 * 3600)

    /// Number of connections with MQTT 5 that were closed in succession before a CONNACK.
    private var closes = 0
    /// Until when MQTT 3.1.1 is used.
    private var fallsBackUntil: Instant?

    /// Returns the version of the next connection.
    func version(now: Instant) -> MQTTVersion {
        if let fallsBackUntil, now < fallsBackUntil { return .v311 }
        return closes < Self.maximumCloses ? .v5 : .v311
    }

    /// Records the end of an attempt to connect with a version.
    ///
    /// - Returns: whether to try again at once.
    mutating func note(_ outcome: Outcome, with version: MQTTVersion, now: Instant) -> Bool {
        switch (version, outcome) {
        case (.v5, .refusedVersion):
            fallsBackUntil = now + Self.retryInterval
            return true
        case (.v5, .closed):
            closes += 1
            return true
        case (.v5, .accepted):
            self = VersionChoice()
            return false
        case (.v311, .accepted) where closes >= Self.maximumCloses:
            (closes, fallsBackUntil) = (0, now + Self.retryInterval)
            return false
        case (.v311, .closed), (.v311, .refusedVersion):
            // The version was not the cause.
            self = VersionChoice()
            return false
        default: return false
        }
    }
}
