import Access
import Base
package import Feeds
package import ProblemDetails

/// A subscription or a request of a client that the gate has allowed, until its end.
///
/// Its places and its memory are reserved before it starts, because the status of a stream can't change after its first
/// byte. It releases them when it ends, or when it is dropped without having started.
package protocol Activity: SubscriptionOwner {
    /// The operation on which the gate decides again.
    var operation: any ControlledOperation { get }
    var outcome: ActivityOutcome { get }

    /// Applies a new decision: the client may see another part of the events or responses from now on.
    func apply(_ permit: Permit)

    /// Ends with a problem, because the operation is no longer allowed.
    func refuse(_ problem: Problem)
}

/// An operation whose execution lasts. It is audited only if it is denied, because it changes nothing by itself.
package protocol LastingOperation: ControlledOperation {
    associatedtype Lasting: Activity

    /// Reserves what the activity needs.
    ///
    /// - Parameters:
    ///   - permit: the proof that it is allowed.
    ///   - client: the client to which it belongs.
    func open(
        on target: Target,
        in network: NetworkParts,
        under permit: Permit,
        for client: GateClient,
        _ outcome: ActivityOutcome
    ) throws -> Lasting
}
