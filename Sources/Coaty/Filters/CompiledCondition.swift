/// A condition prepared for evaluation: paths are split, patterns parsed, numbers converted, and the values of `In`
/// hashed.
///
/// Equal compiled conditions hold for the same objects: unlike ``ObjectFilterCondition``, they compare strings and
/// names byte by byte.
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

    /// Compiles a condition.
    package init(_ condition: ObjectFilterCondition) {
        part = Part(condition, depth: 0)
    }

    /// Returns whether the condition holds for an object.
    ///
    /// - Parameter cache: the values of the object that other conditions have read.
    /// - Throws: ``WorkExceeded`` if the budget is exceeded; then neither the condition nor its opposite holds.
    package func holds(
        for object: JSONView,
        _ cache: inout ValueCache,
        _ budget: inout WorkBudget
    ) throws(WorkExceeded) -> Bool {
        try part.verdict(&budget) { leaf, budget throws(WorkExceeded) in
            try leaf.holds(&budget) { cache.value(at: $0, in: object) }
        } ?? false
    }

    /// Returns whether the condition holds for an object that no other condition is evaluated for.
    package func holds(for object: JSONView, _ budget: inout WorkBudget) throws(WorkExceeded) -> Bool {
        try part.verdict(&budget) { leaf, budget throws(WorkExceeded) in
            try leaf.holds(&budget) { $0.value(in: object).map { FilterValue($0) } }
        } ?? false
    }

    /// Returns whether the condition holds for at least one of several objects, which share the budget.
    ///
    /// - Throws: ``WorkExceeded`` if the budget is exceeded before the condition holds for an object.
    package func holds(
        forOneOf objects: some Sequence<JSONView>,
        _ budget: inout WorkBudget
    ) throws(WorkExceeded) -> Bool {
        for object in objects where try holds(for: object, &budget) { return true }
        return false
    }

    /// Returns whether the condition holds for several named objects. The first name of a property is that of its
    /// object. A property of a missing object does not exist.
    ///
    /// - Throws: ``WorkExceeded``
    package func holds(roots: (String) -> JSONView?, _ budget: inout WorkBudget) throws(WorkExceeded) -> Bool {
        try part.verdict(&budget) { leaf, budget throws(WorkExceeded) in
            try leaf.holds(&budget) { $0.value(inRoots: roots).map { FilterValue($0) } }
        } ?? false
    }

    /// Returns whether the condition is true for several objects, in three-valued logic (Kleene); nil if that is
    /// unknown.
    ///
    /// Unlike ``holds(roots:_:)``, it is for conditions that protect data: for a missing property, or a type that the
    /// operator does not support, the condition and its opposite are unknown. `Exists` and `NotExists` test for missing
    /// properties and are true or false.
    ///
    /// - Parameters:
    ///   - openRoots: roots whose missing properties may exist elsewhere: `Exists` and `NotExists` are unknown for them
    ///     too.
    ///   - roots: returns the object of a root; every condition on a root without an object is unknown.
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

    /// The approximate number of bytes that the condition uses in memory.
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

    /// Evaluates the parts in order, until one decides.
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

    /// Evaluates parts, of which a single `deciding` one decides, whatever the others are.
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
