/// Why a test can't go on.
struct Failed: Error, CustomStringConvertible {
    /// The reason in words.
    let description: String

    init(_ description: String) { self.description = description }
}

/// Waits until a condition holds, without blocking the thread.
///
/// - Parameters:
///   - what: names the condition if it does not hold in time.
///   - limit: seconds after which this throws.
///   - details: adds what is known to the error.
/// - Returns: the seconds that it took.
/// - Throws: ``Failed`` if the condition does not hold in time; what the condition throws.
@discardableResult
func eventually(
    _ what: String,
    within limit: Double = 30,
    details: () -> String = { "" },
    isolation: isolated (any Actor)? = #isolation,
    _ condition: () throws -> Bool
) async throws -> Double {
    let clock = ContinuousClock()
    let start = clock.now
    while try !condition() {
        guard start.duration(to: clock.now) < .seconds(limit) else {
            throw Failed("not within \(limit) s: \(what) \(details())")
        }
        try await Task.sleep(for: .milliseconds(5))
    }
    return start.secondsUntilNow
}

extension ContinuousClock.Instant {
    /// The seconds that have passed since.
    var secondsUntilNow: Double { duration(to: .now) / .seconds(1) }
}
