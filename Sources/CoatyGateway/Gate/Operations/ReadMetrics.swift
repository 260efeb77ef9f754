import Coaty

/// Reads the metrics. Needs what the status needs: it tells the same, in numbers.
struct ReadMetrics: Operation {
    var kind: OperationKind { OperationKind(verb: .read, pattern: .status) }

    func claims(on target: Void, in network: Network, by subject: Principal.Subject) -> [AccessRequest] {
        [AccessRequest(verb: .read, pattern: .status)]
    }

    func execute(on target: Void, in network: Network, under permit: Permit) -> MetricsText { network.metrics.text }
}
