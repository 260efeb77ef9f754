/// A condition in the form in which it is judged: paths are split, patterns parsed, numbers read, and the values of `In` hashed.
///
/// Equal compiled conditions hold for the same objects: unlike ``ObjectFilterCondition``, they compare strings and names byte by
/// byte.
package struct CompiledCondition: Sendable {
    /// A part in three-valued logic (Kleene): nil is neither true nor false.
    indirect enum Part: Sendable, Hashable {
        case leaf(CompiledLeaf)
        case and([Part])
        case or([Part])
        case not(Part)
        /// Nested deeper than ``ObjectFilterCondition/maximumDepth``; nil for every object.
        case tooDeep
    }

    let part: Part

    /// Compiles a condition. The result stands for the condition wherever it is judged.
    package init(_ condition: ObjectFilterCondition) {
        part = Part(condition, depth: 0)
    }

    /// Returns whether the condition holds for an object.
    ///
    /// - Parameter cache: the values of the object that other conditions asked for.
    /// - Throws: ``WorkExceeded`` where that takes more than the budget; neither the condition nor its opposite holds then.
    package func holds(
        for object: JSONView,
        _ cache: inout ValueCache,
        _ budget: inout WorkBudget
    ) throws(WorkExceeded) -> Bool {
        try part.verdict(&budget) { leaf, budget throws(WorkExceeded) in
            try leaf.holds(&budget) { cache.value(at: $0, in: object) }
        } ?? false
    }

    /// Returns whether the condition holds for an object that no other condition is judged on.
    package func holds(for object: JSONView, _ budget: inout WorkBudget) throws(WorkExceeded) -> Bool {
        try part.verdict(&budget) { leaf, budget throws(WorkExceeded) in
            try leaf.holds(&budget) { $0.value(in: object).map { FilterValue($0) } }
        } ?? false
    }

    /// Returns whether the condition holds for at least one of several objects, which share the budget.
    ///
    /// - Throws: ``WorkExceeded`` where that takes more than the budget, before it holds for one.
    package func holds(
        forOneOf objects: some Sequence<JSONView>,
        _ budget: inout WorkBudget
    ) throws(WorkExceeded) -> Bool {
        for object in objects where try holds(for: object, &budget) { return true }
        return false
    }

    /// Returns whether the condition holds for several objects, each of which has a name: a property's first name is that of its
    /// object. A property of an object that is not there does not exist.
    ///
    /// - Throws: ``WorkExceeded``
    package func holds(roots: (String) -> JSONView?, _ budget: inout WorkBudget) throws(WorkExceeded) -> Bool {
        try part.verdict(&budget) { leaf, budget throws(WorkExceeded) in
            try leaf.holds(&budget) { $0.value(inRoots: roots).map { FilterValue($0) } }
        } ?? false
    }

    /// Returns whether the condition is true for several objects, in three-valued logic (Kleene); nil if that is unknown.
    ///
    /// Unlike ``holds(roots:_:)`` it is for conditions that protect something: a missing property, or a type that the operator
    /// does not take, is unknown, and so is the opposite of it. `Exists` and `NotExists` ask for missing properties and are true
    /// or false.
    ///
    /// - Parameters:
    ///   - openRoots: roots whose missing properties may exist elsewhere: `Exists` and `NotExists` are unknown too.
    ///   - roots: the object of a root; everything about a root without one is unknown.
    /// - Throws: ``WorkExceeded``
    package func truth(
        openRoots: Set<String> = [],
        roots: (String) -> JSONView?,
        _ budget: inout WorkBudget
    ) throws(WorkExceeded) -> Bool? {
        try part.verdict(&budget) { leaf, budget throws(WorkExceeded) in
            try leaf.truth(&budget, openRoots, roots)
        }
    }

    /// About how many bytes the condition holds in memory.
    package var footprint: Int { part.footprint }
}

extension CompiledCondition: Hashable {}

extension CompiledCondition.Part {
    fileprivate init(_ condition: ObjectFilterCondition, depth: Int) {
        guard depth <= ObjectFilterCondition.maximumDepth else {
            self = .tooDeep
            return
        }
        switch condition {
        case .property(let property, let expression): self = .leaf(CompiledLeaf(property, expression))
        case .and(let list): self = .and(list.map { Self($0, depth: depth + 1) })
        case .or(let list): self = .or(list.map { Self($0, depth: depth + 1) })
        case .not(let condition): self = .not(Self(condition, depth: depth + 1))
        }
    }

    /// Judges the parts from the first on, until one decides.
    fileprivate func verdict(
        _ budget: inout WorkBudget,
        _ judge: (CompiledLeaf, inout WorkBudget) throws(WorkExceeded) -> Bool?
    ) throws(WorkExceeded) -> Bool? {
        switch self {
        case .leaf(let leaf): return try judge(leaf, &budget)
        case .and(let parts): return try Self.verdict(of: parts, until: false, &budget, judge)
        case .or(let parts): return try Self.verdict(of: parts, until: true, &budget, judge)
        case .not(let part):
            try budget.spend()
            return try part.verdict(&budget, judge).map { !$0 }
        case .tooDeep: return nil
        }
    }

    /// One part that is `deciding` decides, whatever the others are.
    private static func verdict(
        of parts: [Self],
        until deciding: Bool,
        _ budget: inout WorkBudget,
        _ judge: (CompiledLeaf, inout WorkBudget) throws(WorkExceeded) -> Bool?
    ) throws(WorkExceeded) -> Bool? {
        try budget.spend()
        var verdict: Bool? = !deciding
        for part in parts {
            let inner = try part.verdict(&budget, judge)
            if inner == deciding { return deciding }
            if inner == nil { verdict = nil }
        }
        return verdict
    }

    fileprivate var footprint: Int {
        let own = MemoryLayout<Self>.stride + 32
        return switch self {
        case .leaf(let leaf): own + leaf.footprint
        case .and(let parts), .or(let parts): parts.reduce(own) { $0 + $1.footprint }
        case .not(let part): own + part.footprint
        case .tooDeep: own
        }
    }
}
