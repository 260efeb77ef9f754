/// How long to wait before the next attempt: twice as long each time, up to a limit, and never as long as everybody else.
struct Backoff: Sendable {
    static let first = Duration.milliseconds(100)
    static let longest = Duration.seconds(10)

    private var next = Self.first

    /// The time to wait now: between half and the whole of the current step.
    mutating func delay() -> Duration {
        let step = next
        next = min(next * 2, Self.longest)
        return step * Double.random(in: 0.5...1)
    }

    mutating func reset() {
        next = Self.first
    }
}
