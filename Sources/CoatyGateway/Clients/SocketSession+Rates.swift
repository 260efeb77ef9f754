import HTTPServer

extension SocketSession {
    /// Counts a frame among the client's requests.
    ///
    /// - Parameter bytes: the length of its message.
    /// - Throws: `Problem` with status 429 if it comes too early. Frames that end something, or that renew a token, do not, but count.
    func count(_ frame: ClientFrame, _ bytes: Int) throws(Problem) {
        let policy = services.authenticator.access.policy
        guard policy.limits != nil, let principal = store.state.withLock(\.principal) else { return }
        let accounts = services.accounts
        switch frame.op {
        case .authenticate, .unsubscribe, .cancel: accounts.spend(.requests, of: principal, under: policy)
        case .subscribe, .publish, .request, .respond, .identify, .ping:
            try accounts.take(.bytesIn, 0, of: principal, under: policy)
            try accounts.take(.requests, of: principal, under: policy)
        }
        accounts.spend(.bytesIn, bytes, of: principal, under: policy)
    }

    /// Counts a message that is no frame.
    func countMalformed(_ bytes: Int) {
        let policy = services.authenticator.access.policy
        guard policy.limits != nil, let principal = store.state.withLock(\.principal) else { return }
        services.accounts.spend(.requests, of: principal, under: policy)
        services.accounts.spend(.bytesIn, bytes, of: principal, under: policy)
    }
}
