/// The work that one evaluation of a condition may still take: conditions and objects come from others, and arrays within
/// arrays are compared each with each.
struct FilterBudget {
    /// The most steps for a condition on one object. One that takes more does not hold, nor does its opposite. A step is a
    /// condition, a value that is looked at, 16 bytes of one, or 16 moves of a pattern.
    static let maximumSteps = 1_000_000
    /// The same for a condition on several objects: rules decide on all pairs of sources and actors, and compare scalars.
    static let maximumStepsOfPairs = 10_000

    struct Exhausted: Error {}

    private var steps: Int

    init(steps: Int = maximumSteps) {
        self.steps = steps
    }

    mutating func spend(_ count: Int) throws(Exhausted) {
        steps -= count
        if steps < 0 { throw Exhausted() }
    }

    mutating func spend(bytes: Int) throws(Exhausted) {
        try spend(1 + bytes / 16)
    }
}
