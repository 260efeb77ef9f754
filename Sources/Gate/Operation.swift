package import Access
import Base
package import Coaty
package import Feeds
package import ProblemDetails

/// An operation of a client, already parsed and valid. The gate decides on it before it is executed.
package protocol ControlledOperation: Sendable {
    /// The object of the operation, resolved before the decision: a registered node, a known request, or nothing.
    associatedtype Target: Sendable = Void

    /// The kind for counting the operation.
    var kind: OperationKind { get }

    /// Resolves the target of the operation. Has no effect.
    ///
    /// - Returns: nil if it does not exist.
    func resolve(in network: NetworkParts) -> Target?

    /// Returns the requests that must all be allowed. An operation without requests is denied.
    ///
    /// - Parameter subject: the owner to compare with.
    func claims(on target: Target, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest]

    /// The payload that grants are compared with; nil if there is none.
    var payload: Payload? { get }
    /// The rule by which the gate decides.
    var admission: AdmissionRule { get }
    /// The request for which a client needs some grant to learn whether the target exists. Nil if existence is not
    /// secret.
    var concealment: AccessRequest? { get }
    /// The problem for a target that does not exist, or that the principal must not know of.
    var unknown: Problem { get }
    /// Whether the audit log records the operation even if it is allowed.
    var isAudited: Bool { get }
    /// Whether a paused gateway refuses the operation. Reading, and operations that belong to earlier ones, continue.
    var isNewWork: Bool { get }
}

/// The rule by which the gate decides on an operation.
package enum AdmissionRule: Sendable {
    /// All claims are decided now.
    case decided
    /// The claims' names are compared now. If a condition applies, the following events or answers are checked one by
    /// one.
    case standing
    /// Some grant for the request is needed, and each item of a collection or stream is checked. If a grant without a
    /// condition covers the request itself, no item is checked.
    case filtered(AccessRequest)
    /// Some grant for the request is needed, and each item is always checked against the grants for its own event.
    case filteredByEvent(AccessRequest)
}

/// An operation that runs to completion on the caller's thread.
package protocol Operation: ControlledOperation {
    associatedtype Outcome

    /// Executes the operation.
    ///
    /// - Parameter permit: the proof that it is allowed.
    func execute(on target: Target, in network: NetworkParts, under permit: Permit) throws -> Outcome
}

/// An asynchronous operation.
package protocol AsyncOperation: ControlledOperation {
    associatedtype Outcome: Sendable

    /// Executes the operation.
    ///
    /// - Parameter permit: the proof that it is allowed.
    func execute(on target: Target, in network: NetworkParts, under permit: Permit) async throws -> Outcome
}

extension ControlledOperation {
    package var payload: Payload? { nil }
    package var admission: AdmissionRule { .decided }
    package var concealment: AccessRequest? { nil }
    package var unknown: Problem { Problems.notFound(detail: "The resource does not exist.") }
    package var isAudited: Bool { false }
    package var isNewWork: Bool { ![.read, .answer, .administer].contains(kind.verb) }
}

extension ControlledOperation where Target == Void {
    package func resolve(in network: NetworkParts) -> Void? { () }
}
