package import Access
import Coaty
package import Feeds
package import Measurement

/// Reads the metrics. Needs the grant for the status, because the metrics contain the same data as numbers.
package struct ReadMetrics: Operation {
    package var kind: OperationKind { OperationKind(verb: .read, pattern: .status) }

    package func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        [AccessRequest(verb: .read, pattern: .status)]
    }

    package func execute(on target: Void, in network: NetworkParts, under permit: Permit) -> MetricsText {
        network.metrics.text
    }

    package init() {}
}
