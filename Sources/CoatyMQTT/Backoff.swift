/// The delay before the next attempt: it doubles each time, up to a limit, and is randomized so that clients do not
/// reconnect simultaneously.
struct Backoff: Sendable {
    static let first = Duration.milliseconds(100)
    static let longest = Duration.seconds(10)

    private var next = Self.first
    private let longest: Duration

    init(longest: Duration = Self.longest) { self.longest = longest }

    /// Returns the next delay: between half of the current step and the whole step.
    mutating func delay() -> Duration {
        let step = next
        next = min(next * 2, longest)
        return step * Double.random(in: 0.5...1)
    }

    mutating func reset() {
        next = Self.first
    }
}
