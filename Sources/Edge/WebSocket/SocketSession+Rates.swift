import ProblemDetails

extension SocketSession {
    /// Counts a message among the client's requests.
    ///
    /// - Parameters:
    ///   - op: the operation of the frame; nil if the message is not a frame.
    ///   - bytes: the length of the message.
    /// - Throws: `Problem` with status 429 if it arrives too early. Frames that end a subscription or request or renew
    ///   a token, and messages that are not frames, count but are never refused.
    func count(_ op: ClientFrame.Op?, _ bytes: Int) throws(Problem) {
        let policy = services.authenticator.access.policy
        guard policy.limits != nil, let principal else { return }
        let accounts = services.accounts
        switch op {
        case nil, .authenticate, .unsubscribe, .cancel: accounts.spend(.requests, of: principal, under: policy)
        case .subscribe, .publish, .request, .respond, .identify, .ping:
            try accounts.take(.bytesIn, 0, of: principal, under: policy)
            try accounts.take(.requests, of: principal, under: policy)
        }
        accounts.spend(.bytesIn, bytes, of: principal, under: policy)
    }
}
