import ProblemDetails

/// The rate limits of the access configuration. If there are none, nothing is looked up.
extension Accounts {
    /// Takes an amount from the client's current allowance.
    ///
    /// - Throws: `Problem` with status 429 if the allowance is too small. Then nothing is taken.
    func take(
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
    func takeArrival(from address: String, under policy: Policy) throws(Problem) {
        guard let rate = policy.limits?.address else { return }
        try account(ofAddress: address).takeArrival(at: rate)
    }

    /// Takes an amount from the client's allowance, even if the allowance is too small.
    func spend(_ kind: Rate.Kind, _ amount: Int = 1, of principal: Principal, under policy: Policy) {
        guard amount > 0, let rate = principal.rates(under: policy)?[kind] else { return }
        account(of: principal).spend(kind, amount, at: rate)
    }
}

extension ControlledOperation {
    /// The rate kind of the operation, in addition to the request for it.
    var rate: Rate.Kind? {
        switch kind.verb {
        case .publish, .request, .answer: .publications
        case .observe: isNewWork ? .subscriptions : nil
        case .read, .route, .register, .administer: nil
        }
    }
}
