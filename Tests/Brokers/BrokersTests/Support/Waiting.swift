/// An error that ends a test.
struct Failed: Error, CustomStringConvertible {
    /// The reason in words.
    let description: String

    init(_ description: String) { self.description = description }
}

/// Waits until a condition holds, without blocking the thread.
///
/// - Parameters:
///   - what: a description of the condition for the error.
///   - limit: maximum time in seconds.
///   - details: returns more information for the error.
/// - Returns: the time until the condition held, in seconds.
/// - Throws: ``Failed`` if the condition does not hold in time; errors of the condition.
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
    /// The time since this instant, in seconds.
    var secondsUntilNow: Double { duration(to: .now) / .seconds(1) }
}
