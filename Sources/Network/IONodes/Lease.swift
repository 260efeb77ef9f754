package import Coaty

/// The time for which an IO node stays unless it is renewed.
package struct Lease: Sendable {
    /// The default if the client sends no duration.
    static let defaultDuration = Duration.milliseconds(30_000)
    /// The allowed durations, in milliseconds.
    static let durations = 1_000...3_600_000

    let duration: Duration
    /// The wall-clock time for the client; the gateway measures the lease with its own clock.
    let expiresAt: CoatyTimestamp

    init(_ duration: Duration) {
        self.duration = duration
        expiresAt = .nowMillis() + Double(duration / .milliseconds(1))
    }

    /// Returns the member `leaseDuration` of a body, in milliseconds; nil if there is none.
    package static func duration(in body: JSONView) throws(PayloadError) -> Duration? {
        guard let view = body["leaseDuration"] else { return nil }
        guard let number = view.number, let milliseconds = Int(exactly: number), durations.contains(milliseconds) else {
            throw view.invalid("must be a whole number from \(durations.lowerBound) to \(durations.upperBound)")
        }
        return .milliseconds(milliseconds)
    }

    /// `{"duration":…,"expiresAt":…}`
    package var json: String {
        #"{"duration":\#(Int(duration / .milliseconds(1))),"expiresAt":\#(Int(expiresAt))}"#
    }
}
