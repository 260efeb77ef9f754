/// The conditions of the rules that apply to a kind of pairs. They are split, so that a condition on only one object is
/// evaluated once for all pairs of that object.
final class RoutingConditions: Sendable {
    /// A rule's condition, or a part of it.
    indirect enum Part: Sendable {
        /// The condition at this index of ``singles``. It may compare its object with the context.
        case single(Int)
        /// A condition that compares two objects.
        case pair(CompiledCondition)
        case and([Part])
        case or([Part])
        case not(Part)
    }

    /// One part for each rule. The first rule that holds associates the pair.
    let rules: [Part]
    /// Conditions on one object and the context, each once.
    let singles: [(root: IoAssociationRule.Root, condition: CompiledCondition)]

    init(_ conditions: [CompiledCondition]) {
        var singles = Singles()
        rules = conditions.map { singles.split($0.part) }
        self.singles = singles.list
    }

    /// The conditions on one object that were collected so far.
    private struct Singles {
        var list: [(root: IoAssociationRule.Root, condition: CompiledCondition)] = []
        var indices: [CompiledCondition.Part: Int] = [:]

        mutating func split(_ part: CompiledCondition.Part) -> Part {
            // The context is the same for all pairs.
            let roots = part.roots.subtracting([.context])
            if roots.count < 2 { return .single(index(of: part, roots.first ?? .context)) }
            switch part {
            case .leaf, .tooDeep: return .pair(CompiledCondition(part: part))
            case .and(let parts): return .and(parts.map { split($0) })
            case .or(let parts): return .or(parts.map { split($0) })
            case .not(let part): return .not(split(part))
            }
        }

        private mutating func index(of part: CompiledCondition.Part, _ root: IoAssociationRule.Root) -> Int {
            if let known = indices[part] { return known }
            indices[part] = list.count
            list.append((root, CompiledCondition(part: part)))
            return list.count - 1
        }
    }
}

extension CompiledCondition.Part {
    /// The objects that the condition refers to.
    fileprivate var roots: Set<IoAssociationRule.Root> {
        switch self {
        case .leaf(let leaf): Set(leaf.paths.compactMap(\.root))
        case .and(let parts), .or(let parts): parts.reduce(into: []) { $0.formUnion($1.roots) }
        case .not(let part): part.roots
        case .tooDeep: []
        }
    }
}

extension CompiledLeaf {
    /// The property, and the operands that are properties.
    fileprivate var paths: [PropertyPath] {
        [path]
            + [first, second].compactMap { operand in
                if case .property(let path) = operand { path } else { nil }
            }
    }
}

extension PropertyPath {
    fileprivate var root: IoAssociationRule.Root? { names.first.flatMap { .init(rawValue: $0.text) } }
}
