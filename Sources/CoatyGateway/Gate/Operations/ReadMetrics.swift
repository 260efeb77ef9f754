import Access
import Coaty

/// Reads the metrics. Needs the grant for the status, because the metrics contain the same data as numbers.
struct ReadMetrics: Operation {
    var kind: OperationKind { OperationKind(verb: .read, pattern: .status) }

    func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        [AccessRequest(verb: .read, pattern: .status)]
    }

    func execute(on target: Void, in network: NetworkParts, under permit: Permit) -> MetricsText {
        network.metrics.text
    }
}
