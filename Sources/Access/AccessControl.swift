import Base
package import Coaty
package import Logging
package import ProblemDetails
import Synchronization

/// The access policy in force, and the rules for web pages.
///
/// Its lock is never held while another lock is taken: changes are reported outside it.
package final class AccessControl: Sendable {
    private struct State {
        var policy: Policy
        var browserPolicy: BrowserPolicy
        var observers: [UInt64: @Sendable () -> Void] = [:]
        var lastObserver: UInt64 = 0
    }

    private let state: Mutex<State>
    private let logger: Logger

    package init(
        _ policy: Policy,
        browserPolicy: BrowserPolicy = BrowserPolicy(),
        logger: Logger = Logger(label: "coaty-gateway")
    ) {
        self.logger = logger
        state = Mutex(State(policy: policy, browserPolicy: browserPolicy))
    }

    package var policy: Policy { state.withLock(\.policy) }
    /// The web pages and host names that may be used.
    package var browserPolicy: BrowserPolicy { state.withLock(\.browserPolicy) }

    /// Returns the current permissions of a principal.
    ///
    /// - Throws: `Problem` with status 401 if its token has expired or been removed, or if anonymous clients have no
    ///   permissions.
    package func permissions(of principal: Principal) throws(Problem) -> Permissions {
        guard principal.isValid else { throw Problems.tokenExpired }
        let policy = policy
        guard let permissions = principal.permissions(under: policy) else {
            // A new token may be valid under the changed configuration of the identity provider.
            throw principal.issuer != nil && policy.verifier != nil ? Problems.tokenExpired : Problems.unknownToken
        }
        return permissions
    }

    /// Logs the refusal of a page because of its origin, or of a request because of its host. Most pages do not show the
    /// reason, and browsers hide the one of a WebSocket.
    package func noteRefusal(_ problem: Problem, ofPageFrom origin: String?) {
        if problem.status == 421 {
            logger.notice(
                "a request under a public host name was refused; allowed-hosts lists the names that are allowed",
                metadata: ["error": "\(problem.detail ?? "")"]
            )
        }
        guard let origin, problem.type == Problems.originNotAllowed(nil).type else { return }
        // `null` is the origin of a page that was opened as a file.
        guard let name = origin == "null" ? origin : WebOrigin(origin)?.text else { return }
        logger.notice(
            "a page of another origin was refused; allowed-origins lists the origins that are allowed",
            metadata: ["origin": "\(Problems.short(name))"]
        )
    }

    /// Puts both policies in force together, and reports the change to all observers.
    package func replace(_ policy: Policy, browserPolicy: BrowserPolicy? = nil) {
        let observers = state.withLock { state in
            state.policy = policy
            if let browserPolicy { state.browserPolicy = browserPolicy }
            return state.observers.values
        }
        for observer in observers { observer() }
    }

    /// Reports to all observers that principals are no longer valid, although the policy is the same.
    package func review() {
        let observers = state.withLock { Array($0.observers.values) }
        for observer in observers { observer() }
    }

    /// Reports each change of the policy. Add an observer first and then read the policy, so that no change is missed.
    ///
    /// - Parameter observer: called on the thread that changes the policy, with no lock held.
    /// - Returns: a function that ends the observation.
    package func observe(_ observer: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        let id = state.withLock { state in
            state.lastObserver += 1
            state.observers[state.lastObserver] = observer
            return state.lastObserver
        }
        return { [weak self] in _ = self?.state.withLock { $0.observers.removeValue(forKey: id) } }
    }

    /// Calls a handler when a principal has expired.
    ///
    /// - Parameter handler: must not block.
    /// - Returns: nil if the principal does not expire.
    package static func expiry(of principal: Principal, _ handler: @escaping @Sendable () -> Void) -> Deadline? {
        principal.validity.map { validity in
            // The timer uses another clock and must not fire early.
            let rest = max(.zero, validity.end - .now) + .milliseconds(20)
            return Deadline(after: rest, handler: handler)
        }
    }
}

extension Problems {
    package static let tokenExpired = Problem(
        type: typePrefix + "token-expired",
        title: "Token expired",
        status: 401,
        detail: "The token has expired, or its key is no longer valid. Send a new one.",
        headers: [("WWW-Authenticate", #"Bearer error="invalid_token", error_description="expired""#)]
    )

    /// The request has no credentials. A page in a browser can't send the header field with a WebSocket or an EventSource.
    package static let noToken = unauthorized(
        "The request has no token. Send it as Authorization: Bearer …; for a WebSocket or an EventSource of a browser, get a"
            + " ticket with POST /v1/tickets, and append ?ticket=… to the URL."
    )
    /// Without details: which tokens exist is a secret.
    static let unknownToken = unauthorized(
        "The token is none of this gateway's, or was removed. Ask its operator for a token."
    )
    static let notBearer = unauthorized(
        "The Authorization field must be Bearer and a token: this gateway has no user names and passwords."
    )
    static let invalidTicket = unauthorized(
        "The ticket is unknown, was used, or is too old: each is valid once and for a short time, for pages of one origin. Get"
            + " another one with POST /v1/tickets."
    )
    /// The first frame of the connection must authenticate the client.
    package static let notAuthenticated = unauthorized(
        #"The connection has no token. Send {"op":"authenticate","id":"a","token":"…"} before other frames."#
    )

    static func unauthorized(_ detail: String) -> Problem {
        Problem(
            type: typePrefix + "unauthorized",
            title: "Unauthorized",
            status: 401,
            detail: detail,
            headers: [("WWW-Authenticate", "Bearer")]
        )
    }
}
