/// A pair of a source and an actor without a verdict.
struct UndecidedPair: Sendable {
    /// Maximum number of pairs that are decided before other work on the executor, or on the ControllerActor, gets a
    /// turn.
    static let batchSize = 256

    let source: RoutedPoint<IoSource>
    let actor: RoutedPoint<IoActor>
    let verdict: RoutingVerdict
    /// Whether the actor now belongs to another node.
    var hasMoved = false

    /// Decides on pairs. Yields at intervals.
    ///
    /// - Returns: the verdicts, in the order of the pairs.
    /// - Throws: `CancellationError` if the task is cancelled.
    static func decide(
        _ pairs: [UndecidedPair],
        _ work: inout RoutingWork,
        isolation: isolated (any Actor)? = #isolation
    ) async throws -> [Bool] {
        var decisions = [Bool](repeating: false, count: pairs.count)
        var undecided: [Int] = []
        for (index, pair) in pairs.enumerated() {
            switch pair.verdict {
            case .constant(let verdict): decisions[index] = verdict
            case .filter(let conditions, let context):
                decisions[index] = try work.judge(pair.source, pair.actor, by: conditions, in: context)
                if work.endsTurn() { await Task.yield() }
            case .code: undecided.append(index)
            }
        }
        guard !undecided.isEmpty else { return decisions }
        let verdicts = await decideOnControllerActor(undecided.map { pairs[$0] })
        try Task.checkCancellation()
        for (index, verdict) in zip(undecided, verdicts) {
            decisions[index] = work.note(verdict, pairs[index].source, pairs[index].actor)
        }
        return decisions
    }

    /// Calls application code. If the task is cancelled, the verdicts are not used.
    @ControllerActor
    private static func decideOnControllerActor(_ pairs: [UndecidedPair]) -> [Bool?] {
        pairs.map { pair in
            guard !Task.isCancelled, case .code(let decide) = pair.verdict else { return false }
            return decide(pair.source, pair.actor)
        }
    }
}
