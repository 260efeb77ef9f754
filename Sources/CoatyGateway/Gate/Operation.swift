import Coaty
import HTTPServer

/// Something that a client asks for, already parsed and valid. The gate decides about it before it is executed.
protocol ControlledOperation: Sendable {
    /// What the operation is about, looked up before the decision: a registered node, a known request, or nothing.
    associatedtype Target: Sendable = Void

    /// What the operation counts as.
    var kind: OperationKind { get }

    /// Looks up what the operation is about. Has no effect.
    ///
    /// - Returns: nil if it does not exist.
    func resolve(in network: Network) -> Target?

    /// Returns what has to be allowed: all of it. An operation that needs nothing is denied.
    ///
    /// - Parameter subject: the owner to compare with.
    func claims(on target: Target, in network: Network, by subject: Principal.Subject) -> [AccessRequest]

    /// The payload that grants are compared with; nil if there is none.
    var payload: Payload? { get }
    /// How the gate decides.
    var admission: AdmissionRule { get }
    /// What a client needs to learn whether the target exists: some grant for this. Nil if existence is no secret.
    var concealment: AccessRequest? { get }
    /// The problem for a target that does not exist, or that the principal must not know of.
    var unknown: Problem { get }
    /// Whether the audit log records the operation even if it is allowed.
    var isAudited: Bool { get }
    /// Whether a paused gateway refuses the operation. Reading, and what belongs to earlier operations, goes on.
    var isNewWork: Bool { get }
}

/// How the gate decides about an operation.
enum AdmissionRule: Sendable {
    /// All claims are decided now.
    case decided
    /// The claims' names are compared now. Events or answers follow that are judged one by one if a condition applies.
    case standing
    /// Some grant for the request is needed, and each item of a collection or stream is judged. If the request itself is covered
    /// without a condition, no item is.
    case filtered(AccessRequest)
    /// Some grant for the request is needed, and each item is always judged by the grants for its own event.
    case filteredByEvent(AccessRequest)
}

/// An operation that runs to completion on the caller's thread.
protocol Operation: ControlledOperation {
    associatedtype Outcome

    /// Executes the operation.
    ///
    /// - Parameter permit: the proof that it is allowed.
    func execute(on target: Target, in network: Network, under permit: Permit) throws -> Outcome
}

/// An operation that waits.
protocol AsyncOperation: ControlledOperation {
    associatedtype Outcome: Sendable

    /// Executes the operation.
    ///
    /// - Parameter permit: the proof that it is allowed.
    func execute(on target: Target, in network: Network, under permit: Permit) async throws -> Outcome
}

extension ControlledOperation {
    var payload: Payload? { nil }
    var admission: AdmissionRule { .decided }
    var concealment: AccessRequest? { nil }
    var unknown: Problem { Problems.notFound(detail: "The resource does not exist.") }
    var isAudited: Bool { false }
    var isNewWork: Bool { ![.read, .answer, .administer].contains(kind.verb) }
}

extension ControlledOperation where Target == Void {
    func resolve(in network: Network) -> Void? { () }
}
