import HTTPServer

/// Decides about each HTTP request by its head, and finds the principal that it comes from.
struct RequestAdmission: Sendable {
    let browserPolicy: BrowserPolicy
    let authenticator: Authenticator
    /// Templates of the routes that everybody may use.
    let publicPaths: Set<String>
    /// Templates of the routes that pages of every origin may load.
    let sharedPaths: Set<String>

    func admit(_ head: borrowing HTTPRequestHead) -> HTTPAdmission {
        var headers: [(name: String, value: String)] = []
        do throws(Problem) {
            let path = head.pathTemplate ?? ""
            let sender = try browserPolicy.sender(of: head, isPublic: sharedPaths.contains(path))
            headers = BrowserPolicy.headers(for: sender)
            if let preflight = browserPolicy.preflight(head, from: sender) { return .answer(preflight) }
            let isPublic = head.pathTemplate == nil || publicPaths.contains(path)
            let principal = try isPublic ? nil : self.principal(of: head, sender)
            let access = authenticator.access.policy
            // Where anonymous clients may do nothing, a foreign page that reaches the gateway can't, either.
            if principal?.subject ?? .anonymous == .anonymous, access.permissions(of: .anonymous) != nil {
                try browserPolicy.checkHost(head)
            }
            guard !isPublic, principal == nil else { return .admit(headers: headers, context: principal) }
            guard access.permissions(of: .anonymous) != nil || head.method == .options else {
                throw Problems.unauthorized
            }
            return .admit(headers: headers, context: Principal(.anonymous, address: head.peer))
        } catch {
            var problem = error
            problem.headers += headers
            return .answer(problem.response())
        }
    }

    /// - Returns: nil if the request has no credentials.
    private func principal(
        of head: borrowing HTTPRequestHead,
        _ sender: BrowserPolicy.Sender
    ) throws(Problem) -> Principal? {
        try authenticator.principal(
            authorization: head.header("Authorization"),
            // A URL may end up in a log: a ticket opens one stream, and nothing else.
            ticket: head.pathTemplate == EventStreamResource.path ? head.queryValue("ticket") : nil,
            origin: sender.origin,
            address: head.peer
        )
    }
}

extension BrowserPolicy.Sender {
    /// The origin of the page; nil for the gateway's own and for a client that is no page.
    var origin: WebOrigin? {
        if case .page(let origin) = self { origin } else { nil }
    }
}
