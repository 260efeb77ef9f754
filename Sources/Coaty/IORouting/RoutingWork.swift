/// Evaluates filter conditions for the pairs of one run, and counts the work.
///
/// A pair has a work budget for all of its rules, and a condition on one object has one for that object. A pair that
/// exceeds a budget is not associated. When a run has used up its own budget, no further pairs are associated.
struct RoutingWork {
    /// Maximum number of steps for the rules of a pair, and for a condition on one object.
    static let stepsPerPair = ObjectFilterCondition.maximumStepsOfPairs
    /// The steps of a run, and the steps that each pair of the context adds to them. A step takes about 50 ns.
    static let stepsPerRun = 50_000_000
    static let stepsOfRunPerPair = 100
    /// Maximum number of cached verdicts on single objects, of one byte each.
    private static let maximumKnown = 32 << 20
    /// The number of steps after which other work on the executor gets a turn.
    private static let stepsPerTurn = 50_000

    /// The known verdicts of conditions on one object.
    private final class Known {
        enum Verdict: UInt8 { case unknown, holds, fails, tooExpensive }

        var verdicts: [Verdict]

        init(count: Int) { verdicts = Array(repeating: .unknown, count: count) }
    }

    private struct Key: Hashable {
        let object: ObjectIdentifier
        let conditions: ObjectIdentifier
    }

    private enum Stop: Error { case tooExpensive, cancelled }

    /// The objects of a pair.
    private struct Pair {
        let objects: IoAssociationRule.Objects
        let conditions: RoutingConditions
        let source, sourceNode, actor, actorNode, context: Known

        func known(_ root: IoAssociationRule.Root) -> Known {
            switch root {
            case .source: source
            case .sourceNode: sourceNode
            case .actor: actor
            case .actorNode: actorNode
            case .context: context
            }
        }
    }

    private var left: Int
    private var leftOfTurn = stepsPerTurn
    private var known: [Key: Known] = [:]
    private var knownCount = 0
    /// The first pair that could not be decided.
    private(set) var excess: RoutingExcess?

    /// - Parameters:
    ///   - steps: the steps of the run.
    ///   - pairCount: the number of pairs of the context.
    init(steps: Int, pairCount: Int) { left = steps + pairCount * Self.stepsOfRunPerPair }

    /// Whether the budget of the run is used up.
    var isExhausted: Bool { left <= 0 }

    /// Returns whether it is time to yield, once for each turn.
    mutating func endsTurn() -> Bool {
        guard leftOfTurn <= 0 else { return false }
        leftOfTurn = Self.stepsPerTurn
        return true
    }

    /// Returns whether one of the rules holds for a pair; false if evaluating them takes too much work.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    mutating func judge(
        _ source: RoutedPoint<IoSource>,
        _ actor: RoutedPoint<IoActor>,
        by conditions: RoutingConditions,
        in context: JSONView
    ) throws(CancellationError) -> Bool {
        if Task.isCancelled { throw CancellationError() }
        guard !isExhausted else { return note(nil, source, actor) }
        let pair = Pair(
            objects: IoAssociationRule.Objects(source, actor, context),
            conditions: conditions,
            source: known(ObjectIdentifier(source), conditions),
            sourceNode: known(ObjectIdentifier(source.node), conditions),
            actor: known(ObjectIdentifier(actor), conditions),
            actorNode: known(ObjectIdentifier(actor.node), conditions),
            context: known(ObjectIdentifier(conditions), conditions)
        )
        var budget = WorkBudget(steps: Self.stepsPerPair)
        defer { spend(Self.stepsPerPair - max(0, budget.left)) }
        var verdict: Bool? = false
        for rule in conditions.rules where budget.left >= 0 && !isExhausted {
            do throws(Stop) {
                if try holds(rule, pair, &budget) { return true }
            } catch {
                if case .cancelled = error { throw CancellationError() }
                // Another rule may still hold.
                verdict = nil
            }
        }
        return note(isExhausted ? nil : verdict, source, actor)
    }

    /// Records a verdict; nil means that evaluating takes too much work.
    mutating func note(_ verdict: Bool?, _ source: RoutedPoint<IoSource>, _ actor: RoutedPoint<IoActor>) -> Bool {
        guard verdict == nil else { return verdict ?? false }
        if excess == nil || isExhausted && excess?.isOfRun == false {
            excess = RoutingExcess(ioSourceId: source.id, ioActorId: actor.id, isOfRun: isExhausted)
        }
        return false
    }

    private mutating func holds(
        _ part: RoutingConditions.Part,
        _ pair: Pair,
        _ budget: inout WorkBudget
    ) throws(Stop) -> Bool {
        do throws(WorkExceeded) {
            try budget.spend()
        } catch {
            throw .tooExpensive
        }
        switch part {
        case .single(let index): return try holds(index, pair)
        case .pair(let condition):
            do throws(WorkExceeded) {
                return try condition.holds(roots: { pair.objects[$0] }, &budget)
            } catch {
                throw .tooExpensive
            }
        case .and(let parts):
            for part in parts where try !holds(part, pair, &budget) { return false }
            return true
        case .or(let parts):
            for part in parts where try holds(part, pair, &budget) { return true }
            return false
        case .not(let part): return try !holds(part, pair, &budget)
        }
    }

    /// Evaluates a condition on one object, once for all pairs of that object.
    private mutating func holds(_ index: Int, _ pair: Pair) throws(Stop) -> Bool {
        let (root, condition) = pair.conditions.singles[index]
        let known = pair.known(root)
        switch known.verdicts[index] {
        case .holds: return true
        case .fails: return false
        case .tooExpensive: throw .tooExpensive
        case .unknown: break
        }
        if Task.isCancelled { throw .cancelled }
        guard !isExhausted else { throw .tooExpensive }
        var budget = WorkBudget(steps: Self.stepsPerPair)
        defer { spend(Self.stepsPerPair - max(0, budget.left)) }
        do throws(WorkExceeded) {
            let holds = try condition.holds(roots: { pair.objects[$0] }, &budget)
            known.verdicts[index] = holds ? .holds : .fails
            return holds
        } catch {
            known.verdicts[index] = .tooExpensive
            throw .tooExpensive
        }
    }

    private mutating func known(_ object: ObjectIdentifier, _ conditions: RoutingConditions) -> Known {
        let key = Key(object: object, conditions: ObjectIdentifier(conditions))
        if let known = known[key] { return known }
        let count = conditions.singles.count
        if knownCount + count > Self.maximumKnown { (known, knownCount) = ([:], 0) }
        let new = Known(count: count)
        known[key] = new
        knownCount += count
        return new
    }

    private mutating func spend(_ steps: Int) {
        left -= steps
        leftOfTurn -= steps
    }
}
