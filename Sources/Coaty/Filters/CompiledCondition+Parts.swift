extension CompiledCondition {
    init(part: Part) { self.part = part }

    /// Conditions that must all hold for this one to hold: the parts of an `and`, or the condition itself.
    package var conjuncts: [CompiledCondition] {
        if case .and(let parts) = part { parts.flatMap { CompiledCondition(part: $0).conjuncts } } else { [self] }
    }
}
