package import Access
package import Base
import Coaty
package import Feeds
import ProblemDetails

/// The only path from a client to the network: every operation of every transport passes through it.
///
/// It resolves the target of the operation, decides, executes and audits. No transport gets hold of a ``NetworkParts``,
/// and none can create a ``Permit``.
package final class Gate: Sendable {
    let access: AccessControl
    private let network: NetworkParts
    private let audit: AuditLog
    private let counts: OperationCounts
    private let pause: PauseState

    package init(
        _ network: NetworkParts,
        access: AccessControl,
        audit: AuditLog,
        counts: OperationCounts,
        pause: PauseState = PauseState()
    ) {
        self.network = network
        self.access = access
        self.audit = audit
        self.counts = counts
        self.pause = pause
    }

    /// Returns the account of a principal.
    package func account(of principal: Principal) -> ClientAccount { network.accounts.account(of: principal) }

    /// The limits of a request.
    package var limits: Limits { network.accounts.limits }

    /// Performs an operation, on the caller's thread.
    ///
    /// - Throws: `Problem` with status 401, 403 or 404 if it is not allowed, with 503 if the gateway is paused, with
    ///   429 if it arrives too early; the operation's own errors.
    package func perform<Performed: Operation>(_ operation: Performed, by principal: Principal) throws
        -> Performed.Outcome
    {
        let (target, permit, claims) = try admitNow(operation, principal)
        do {
            let outcome = try operation.execute(on: target, in: network, under: permit)
            end(operation, claims, principal)
            return outcome
        } catch {
            end(operation, claims, principal, error)
            throw error
        }
    }

    /// Performs an asynchronous operation. The decision is made before the first suspension.
    ///
    /// - Throws: as ``perform(_:by:)-(Operation,_)``.
    package func perform<Performed: AsyncOperation>(
        _ operation: Performed,
        by principal: Principal
    ) async throws -> Performed.Outcome {
        let (target, permit, claims) = try admitNow(operation, principal)
        do {
            let outcome = try await operation.execute(on: target, in: network, under: permit)
            end(operation, claims, principal)
            return outcome
        } catch {
            end(operation, claims, principal, error)
            throw error
        }
    }

    /// Opens an operation that lasts: decides, and reserves what it needs. It has no effect in the network until it is
    /// started. From now on it is decided again whenever the policy or the client's principal changes.
    ///
    /// - Throws: as ``perform(_:by:)-(Operation,_)``; 401 if the client has not authenticated.
    package func open<Opened: LastingOperation>(
        _ operation: Opened,
        for client: GateClient
    ) throws -> Opened.Lasting {
        let decisions = client.decisions
        guard let principal = client.principal else { throw Problems.notAuthenticated }
        let (target, permit, _) = try admitNow(operation, principal)
        let outcome = ActivityOutcome(operation.kind, counts)
        do {
            let activity = try operation.open(on: target, in: network, under: permit, for: client, outcome)
            client.add(activity, decidedAt: decisions)
            return activity
        } catch {
            outcome.set(OperationCounts.Outcome(error))
            throw error
        }
    }

    /// Decides on an activity again.
    func decide(_ activity: some Activity, by principal: Principal) {
        do throws(Problem) {
            activity.apply(try permit(activity.operation, principal))
        } catch {
            activity.refuse(error)
        }
    }

    /// Decides on an operation, without any effect.
    func permit(_ operation: some ControlledOperation, _ principal: Principal) throws(Problem) -> Permit {
        try admit(operation, principal).permit
    }

    private func admitNow<Asked: ControlledOperation>(
        _ operation: Asked,
        _ principal: Principal
    ) throws(Problem) -> (target: Asked.Target, permit: Permit, claims: [AccessRequest]) {
        let admitted: (target: Asked.Target, permit: Permit, claims: [AccessRequest])
        do throws(Problem) {
            admitted = try admit(operation, principal)
        } catch {
            counts.count(operation.kind, .denied)
            throw error
        }
        guard !operation.isNewWork || !pause.isPaused else {
            counts.count(operation.kind, .limited)
            throw Problems.paused
        }
        if let rate = operation.rate {
            do throws(Problem) {
                try network.accounts.take(rate, of: principal, under: access.policy)
            } catch {
                counts.count(operation.kind, .limited)
                throw error
            }
        }
        return admitted
    }

    /// Called when an operation was executed or has thrown an error.
    private func end(
        _ operation: some ControlledOperation,
        _ claims: [AccessRequest],
        _ principal: Principal,
        _ error: (any Error)? = nil
    ) {
        counts.count(operation.kind, error.map(OperationCounts.Outcome.init) ?? .done)
        if operation.isAudited { audit.performed(claims, by: principal, error: error) }
    }

    private func admit<Asked: ControlledOperation>(
        _ operation: Asked,
        _ principal: Principal
    ) throws(Problem) -> (target: Asked.Target, permit: Permit, claims: [AccessRequest]) {
        let permissions = try access.permissions(of: principal)
        if permissions.isUnrestricted {
            guard let target = operation.resolve(in: network) else { throw operation.unknown }
            let permit = Permit(principal, permissions, view: nil, network.accounts)
            guard operation.isAudited else { return (target, permit, []) }
            return (target, permit, operation.claims(on: target, in: network, by: principal.subject))
        }
        // A target that does not exist and a target that the client must not know of get the same answer. Without any
        // grant, both are forbidden.
        if let needed = operation.concealment ?? operation.admission.neededGrant,
            !permissions.hasGrant(needed.verb, needed.pattern)
        {
            throw denied(needed, permissions.decide(needed).denial, permissions, principal)
        }
        guard let target = operation.resolve(in: network) else { throw operation.unknown }
        // Of several members with the same name, agents may use another one than the one that was checked.
        if let problem = operation.payload.flatMap(Problems.duplicates(in:)) { throw problem }
        let view: AccessView?
        let claims: [AccessRequest]
        switch operation.admission {
        case .filteredByEvent(let needed): (view, claims) = (AccessView(permissions: permissions), [needed])
        case .filtered(let needed):
            (view, claims) = (permissions.admit(needed).isEntire ? nil : AccessView(permissions: permissions), [needed])
        case .decided, .standing:
            claims = operation.claims(on: target, in: network, by: principal.subject)
            let isStanding = operation.admission.isStanding
            let denial = isStanding ? standingDenial(of: claims, permissions) : permissions.firstDenial(of: claims)
            if let (claim, reason) = denial {
                let problem = denied(claim, reason, permissions, principal)
                throw operation.concealment == nil ? problem : operation.unknown
            }
            guard !claims.isEmpty else { throw Problems.forbidden }
            let isEntire = !isStanding || claims.allSatisfy { permissions.admit($0).isEntire }
            view = isEntire ? nil : AccessView(permissions: permissions)
        }
        return (target, Permit(principal, permissions, view: view, network.accounts), claims)
    }

    private func standingDenial(
        of claims: [AccessRequest],
        _ permissions: Permissions
    ) -> (request: AccessRequest, denial: Denial)? {
        for claim in claims {
            if claim.isJudgeable {
                // The object or the payload is known now: conditions on it hold now or never.
                if let denial = permissions.decide(claim).denial { return (claim, denial) }
            } else if case .denied(let denial) = permissions.admit(claim) {
                return (claim, denial)
            }
        }
        return nil
    }

    private func denied(
        _ claim: AccessRequest,
        _ denial: Denial?,
        _ permissions: Permissions,
        _ principal: Principal
    ) -> Problem {
        audit.denied(claim, by: principal)
        if claim.isAboutExisting, !permissions.wouldAllowAsOwn(claim) {
            // The client may not know the object. The problem must not depend on its types, content or owner.
            let all = AccessRequest(verb: claim.verb, pattern: claim.pattern, target: .anyObject)
            return Problems.forbidden(all, Denial(request: all, failed: []))
        }
        return denial.map { Problems.forbidden(claim, $0) } ?? Problems.forbidden
    }
}

extension Permissions {
    /// Returns whether a request would be allowed if the principal owned the affected object.
    fileprivate func wouldAllowAsOwn(_ request: AccessRequest) -> Bool {
        var own = request
        own.isOfOthers = false
        return decide(own).denial == nil
    }
}

extension AdmissionRule {
    fileprivate var isStanding: Bool {
        if case .standing = self { true } else { false }
    }

    /// The request that needs some grant.
    fileprivate var neededGrant: AccessRequest? {
        switch self {
        case .decided, .standing: nil
        case .filtered(let needed), .filteredByEvent(let needed): needed
        }
    }
}

extension Admission {
    fileprivate var isEntire: Bool {
        if case .everything = self { true } else { false }
    }
}

/// The proof that the gate has allowed an operation.
package struct Permit: Sendable {
    let principal: Principal
    /// The part of the following events or answers that the principal may see; nil for all of them.
    let view: AccessView?
    private let permissions: Permissions
    private let accounts: Accounts

    fileprivate init(_ principal: Principal, _ permissions: Permissions, view: AccessView?, _ accounts: Accounts) {
        self.principal = principal
        self.permissions = permissions
        self.view = view
        self.accounts = accounts
    }

    /// The account of the principal. Looked up on each access, since most operations do not use it.
    var account: ClientAccount { accounts.account(of: principal) }

    /// Returns the view of a principal on items that a request covers; nil if the principal may see all of them.
    func view(unlessEntirely request: AccessRequest) -> AccessView? {
        permissions.admit(request).isEntire ? nil : AccessView(permissions: permissions)
    }

    /// Whether the principal does not have all permissions.
    var isRestricted: Bool { !permissions.isUnrestricted }

    /// Returns whether the principal may also have an optional part of the outcome.
    func allows(_ request: AccessRequest) -> Bool { permissions.decide(request).denial == nil }
}

extension Problems {
    static let forbidden = Problem(
        type: typePrefix + "forbidden",
        title: "Forbidden",
        status: 403,
        detail: "No grant of your roles allows this."
    )

    /// Returns the problem of a payload in which an object has two members with the same name; nil if there is no such
    /// object.
    static func duplicates(in payload: Payload) -> Problem? {
        payload.json.duplicateMember.map {
            of(.invalid(pointer: $0.pointer, reason: "has the same name as another member"))
        }
    }

    static func forbidden(_ request: AccessRequest, _ denial: Denial) -> Problem {
        var problem = forbidden
        if !denial.failed.isEmpty {
            problem.detail =
                "The condition of \(denial.failed.joined(separator: ", ")) is not true, or can't be evaluated."
        }
        problem.members = [
            ("verb", .string(request.verb.rawValue)), ("pattern", .string(request.pattern.rawValue)),
            ("missing", .string(short(denial.missing))),
        ]
        return problem
    }
}
