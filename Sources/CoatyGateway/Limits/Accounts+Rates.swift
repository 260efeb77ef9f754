import HTTPServer

/// The rates that the access configuration sets. Without any, nothing is looked up.
extension Accounts {
    /// Takes an amount from what a client may do now.
    ///
    /// - Throws: `Problem` with status 429 if it may not do as much now. Nothing is taken then.
    func take(
        _ kind: Rate.Kind,
        _ amount: Int = 1,
        of principal: Principal,
        under policy: Policy
    ) throws(Problem) {
        guard let rate = principal.rates(under: policy)?[kind] else { return }
        try account(of: principal).take(kind, amount, at: rate)
    }

    /// Takes a request from what may come from an address, before its credentials are looked at.
    ///
    /// - Throws: `Problem` with status 429 if it comes too early.
    func takeArrival(from address: String, under policy: Policy) throws(Problem) {
        guard let rate = policy.limits?.address else { return }
        try account(ofAddress: address).takeArrival(at: rate)
    }

    /// Takes an amount from what a client may do, whether it may do as much now or not.
    func spend(_ kind: Rate.Kind, _ amount: Int = 1, of principal: Principal, under policy: Policy) {
        guard amount > 0, let rate = principal.rates(under: policy)?[kind] else { return }
        account(of: principal).spend(kind, amount, at: rate)
    }
}

extension ControlledOperation {
    /// What the operation counts as, besides the request for it.
    var rate: Rate.Kind? {
        switch kind.verb {
        case .publish, .request, .answer: .publications
        case .observe: isNewWork ? .subscriptions : nil
        case .read, .route, .register, .administer: nil
        }
    }
}
