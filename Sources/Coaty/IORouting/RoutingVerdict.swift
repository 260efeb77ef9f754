/// The way to decide on pairs of one kind.
enum RoutingVerdict: Sendable {
    /// The same verdict for all pairs.
    case constant(Bool)
    /// Filter conditions in a context, evaluated on the executor of the router.
    case filter(RoutingConditions, context: JSONView)
    /// Application code, which runs on the ``ControllerActor``. It returns nil if it takes too much work.
    case code(@ControllerActor (_ source: RoutedPoint<IoSource>, _ actor: RoutedPoint<IoActor>) -> Bool?)
}
