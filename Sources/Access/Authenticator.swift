package import Base
import Coaty
package import ProblemDetails
import Synchronization

/// Finds the principal of a request or connection by its credentials.
package final class Authenticator: Sendable {
    private struct State {
        var failures: FailedAttempts
        var tickets: Tickets
    }

    package let access: AccessControl
    private let log: AuditLog
    /// The tokens of an identity provider that were presented.
    package let tokens = TokenCounts()
    /// This lock is a leaf.
    private let state: Mutex<State>

    package init(access: AccessControl, log: AuditLog, limits: Limits) {
        self.access = access
        self.log = log
        state = Mutex(
            State(
                failures: FailedAttempts(limit: limits.failedAttempts, maximumAddresses: limits.failingAddresses),
                tickets: Tickets(maximum: limits.tickets, maximumPerSubject: limits.ticketsPerClient)
            )
        )
    }

    /// Returns the principal of an `Authorization` field, of a ticket, or of the connection's certificate, in this
    /// order.
    ///
    /// - Parameters:
    ///   - authorization: the value of the field; nil if there is none.
    ///   - ticket: a ticket in the URL; nil if there is none.
    ///   - certificate: the verified certificate of the client; nil if it has sent none.
    ///   - origin: the origin of the page that sends the request; nil for the gateway's own page.
    /// - Returns: nil if the client presents no credentials, its certificate has no role, or access is open, so that
    ///   credentials are ignored.
    /// - Throws: `Problem` with status 401 or 429.
    package func principal(
        authorization: String?,
        ticket: String?,
        certificate: ClientCertificate?,
        origin: WebOrigin?,
        address: String
    ) throws(Problem) -> Principal? {
        let policy = access.policy
        guard !policy.isOpen else { return nil }
        guard let authorization else {
            guard let ticket else { return certificate.flatMap { Self.principal(of: $0, address, under: policy) } }
            // Not counted: an EventSource that reconnects automatically presents its ticket again.
            guard let found = state.withLock({ $0.tickets.redeem(ticket, origin: origin, at: .now) }) else {
                throw Problems.invalidTicket
            }
            let principal = Principal(found, address: address, under: policy)
            guard principal.isValid else { throw Problems.tokenExpired }
            return principal
        }
        // Compares bytes, because this runs for each request.
        let space = UInt8(ascii: " ")
        let parts = authorization.utf8.split(separator: space, maxSplits: 1, omittingEmptySubsequences: true)
        guard parts.count == 2, parts[0].map({ $0 | 0x20 }).elementsEqual("bearer".utf8) else {
            throw failed(from: address, Problems.notBearer)
        }
        return try principal(token: Substring(parts[1].drop { $0 == space }), address: address)
    }

    /// Returns the principal of a token of the configuration, or of the configured identity provider.
    ///
    /// - Throws: `Problem` with status 401 or 429; 503 while no keys are loaded to verify the token.
    package func principal(token: some StringProtocol, address: String) throws(Problem) -> Principal {
        let policy = access.policy
        let token = String(token)
        let digest = TokenDigest(of: token)
        if let found = policy.token(digest: digest) {
            let authenticated = Principal.Authenticated(subject: .token(found.name), token: digest)
            return Principal(authenticated, address: address, under: policy)
        }
        guard let verifier = policy.verifier, CompactToken.isLikely(token) else { throw failed(from: address) }
        let refusal: TokenVerifier.Refusal
        do throws(TokenVerifier.Refusal) {
            let authenticated = try verifier.authenticate(token)
            tokens.count(.accepted)
            return Principal(authenticated, address: address, under: policy)
        } catch {
            refusal = error
        }
        tokens.count(TokenCounts.Outcome(refusal))
        switch refusal {
        case .invalid(let reason): throw failed(from: address, Problems.invalidToken(reason))
        // These are not failed attempts: the client has, or may have, a token of the provider.
        case .expired: throw Problems.tokenExpired
        case .notYetValid(let seconds): throw Problems.tokenNotYetValid(seconds: seconds)
        case .keysNotLoaded: throw Problems.keysNotLoaded(retryAfter: .seconds(1))
        case .keyUnknown(let id, let fetched, let pause):
            let problem = Problems.keysNotLoaded(retryAfter: pause)
            let mayWait = state.withLock {
                $0.failures.mayWait(for: id, since: fetched, from: address, at: .now)
            }
            throw mayWait ? problem : failed(from: address, problem)
        }
    }

    /// - Returns: nil if no certificate with this name has a role.
    private static func principal(
        of certificate: ClientCertificate,
        _ address: String,
        under policy: Policy
    ) -> Principal? {
        guard let name = certificate.principalName else { return nil }
        let validity = Validity(until: Double(certificate.expiry), at: CoatyTimestamp.nowMillis() / 1000)
        let principal = Principal(
            Principal.Authenticated(subject: .certificate(name), validity: validity),
            address: address,
            under: policy
        )
        // The principal has looked up the entry for its name, and caches the permissions.
        return principal.permissions(under: policy) == nil ? nil : principal
    }

    /// - Parameter problem: the answer, unless there are too many failures.
    private func failed(from address: String, _ problem: Problem = Problems.unknownToken) -> Problem {
        log.failedAuthentication(from: address)
        let seconds = state.withLock { $0.failures.retryAfter(failureFrom: address, at: .now) }
        return seconds.map(Problems.tooManyAttempts) ?? problem
    }

    /// Issues a ticket for a principal, which a page of the origin may use once.
    ///
    /// - Returns: the ticket, and how long it is valid.
    package func ticket(for principal: Principal, origin: WebOrigin?) -> (ticket: String, validity: Duration) {
        let (ticket, _) = state.withLock { $0.tickets.issue(for: principal.authenticated, origin: origin, at: .now) }
        return (ticket, Tickets.lifetime)
    }
}

extension Problems {
    static func tooManyAttempts(_ seconds: Int) -> Problem {
        Problem(
            type: typePrefix + "too-many-attempts",
            title: "Too many attempts",
            status: 429,
            detail: "Too many failed authentications from your address.",
            headers: [("Retry-After", String(seconds))]
        )
    }
}
