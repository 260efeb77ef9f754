import Coaty

/// Conditions that clients write: what they may cost is bounded, because they are asked of every event.
extension ObjectFilterCondition {
    /// The most properties that a condition may be about.
    static let maximumProperties = 100
    /// The most steps that a condition may take for one event; what takes more does not hold.
    static let maximumSteps = 10_000

    /// Reads a condition of a client's.
    ///
    /// - Throws: `PayloadError`
    init(ofClient view: JSONView) throws(PayloadError) {
        try view.checkValues()
        try self.init(view)
        guard leafCount <= Self.maximumProperties else {
            throw view.invalid("is about more than \(Self.maximumProperties) properties")
        }
    }

    /// Whether the condition holds for one of the objects of an event.
    func holds(forOneOf objects: [JSONView]) -> Bool { matches(any: objects, steps: Self.maximumSteps) ?? false }
}
