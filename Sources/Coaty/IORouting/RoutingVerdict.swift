/// How the pairs of one kind are decided.
package enum RoutingVerdict: Sendable {
    /// All pairs alike.
    case constant(Bool)
    /// By a function that runs on the executor of the router.
    case filter(@Sendable (_ source: RoutedPoint<IoSource>, _ actor: RoutedPoint<IoActor>) -> Bool)
    /// By code of the application, which runs on the ``ControllerActor``.
    case code(@ControllerActor (_ source: RoutedPoint<IoSource>, _ actor: RoutedPoint<IoActor>) -> Bool)
}

/// A pair of a source and an actor that waits for its verdict.
struct UndecidedPair: Sendable {
    /// How many pairs are decided in one go; then other work on the executor, or on the ControllerActor, has its turn.
    static let batchSize = 256

    let source: RoutedPoint<IoSource>
    let actor: RoutedPoint<IoActor>
    let verdict: RoutingVerdict
    /// Whether the actor belongs to another node than before.
    var hasMoved = false

    /// Decides on pairs, in their order.
    static func decide(
        _ pairs: [UndecidedPair],
        isolation: isolated (any Actor)? = #isolation
    ) async -> [Bool] {
        var decisions: [Bool] = []
        decisions.reserveCapacity(pairs.count)
        for pair in pairs {
            switch pair.verdict {
            case .constant(let verdict): decisions.append(verdict)
            case .filter(let decide): decisions.append(decide(pair.source, pair.actor))
            case .code: return await decideOnControllerActor(pairs)
            }
        }
        return decisions
    }

    @ControllerActor
    private static func decideOnControllerActor(_ pairs: [UndecidedPair]) -> [Bool] {
        pairs.map { pair in
            switch pair.verdict {
            case .constant(let verdict): verdict
            case .filter(let decide): decide(pair.source, pair.actor)
            case .code(let decide): decide(pair.source, pair.actor)
            }
        }
    }
}
