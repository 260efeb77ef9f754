package import Base
package import ProblemDetails

/// The accounts of principals, and the rate limits of the access configuration. If there are none, nothing is looked up.
extension Accounts {
    /// Returns the account of a principal: the account of its token, user, certificate or address.
    package func account(of principal: Principal) -> ClientAccount {
        switch principal.subject {
        case .token(let name): account(.token(name))
        case .user(let issuer, let name): account(.user(issuer: issuer, name: name))
        case .certificate(let name): account(.certificate(name))
        case .anonymous: account(ofAddress: principal.address)
        }
    }

    /// Takes an amount from the client's current allowance.
    ///
    /// - Throws: `Problem` with status 429 if the allowance is too small. Then nothing is taken.
    package func take(
        _ kind: Rate.Kind,
        _ amount: Int = 1,
        of principal: Principal,
        under policy: Policy
    ) throws(Problem) {
        guard let rate = principal.rates(under: policy)?[kind] else { return }
        try account(of: principal).take(kind, amount, at: rate)
    }

    /// Takes a request from the allowance of an address, before its credentials are checked.
    ///
    /// - Throws: `Problem` with status 429 if it arrives too early.
    package func takeArrival(from address: String, under policy: Policy) throws(Problem) {
        guard let rate = policy.limits?.address else { return }
        try account(ofAddress: address).takeArrival(at: rate)
    }

    /// Takes an amount from the client's allowance, even if the allowance is too small.
    package func spend(_ kind: Rate.Kind, _ amount: Int = 1, of principal: Principal, under policy: Policy) {
        guard amount > 0, let rate = principal.rates(under: policy)?[kind] else { return }
        account(of: principal).spend(kind, amount, at: rate)
    }
}
