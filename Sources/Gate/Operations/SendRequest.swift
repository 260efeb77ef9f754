package import Access
import Base
package import Coaty
package import Feeds
package import Network

/// Publishes a request event, whose responses follow.
package struct SendRequest: LastingOperation {
    /// The memory of a pending request without its payload, in bytes: timers, the subscription to its responses, and
    /// queues.
    static let cost = 4 << 10

    let request: any ClientRequest
    let options: RequestOptions
    /// The identity that publishes; nil for the gateway's identity.
    var identity: ClientIdentity?

    package init(request: any ClientRequest, options: RequestOptions, identity: ClientIdentity? = nil) {
        self.request = request
        self.options = options
        self.identity = identity
    }

    package var kind: OperationKind { OperationKind(verb: .request, pattern: pattern) }
    package var admission: AdmissionRule { .standing }

    package var payload: Payload? { request.payload }
    var pattern: AccessPattern { type(of: request).pattern }

    package func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        request.requestClaims(in: network, by: subject)
    }

    /// - Throws: `Problem` if the client has reached its limit of requests, memory or the outbox; `CommunicationError`
    ///   if the gateway is offline: a client must not wait until the broker is available.
    package func open(
        on target: Void,
        in network: NetworkParts,
        under permit: Permit,
        for client: GateClient,
        _ outcome: ActivityOutcome
    ) throws -> RequestActivity {
        let manager = identity?.manager ?? network.manager
        guard manager.isConnected else {
            network.requestCount.countOne()
            throw CommunicationError.offline
        }
        let account = permit.account
        let holdings = RequestActivity.Holdings(
            place: try account.take(.requests),
            charge: try account.charge(Self.cost + request.payload.footprint),
            outbox: try account.takeOutbox(request.payload.bytes.count, publications: request.names.count)
        )
        return RequestActivity(
            self,
            AnswerView(view(permit)),
            account,
            holdings,
            on: manager,
            in: network,
            for: client,
            outcome
        )
    }

    /// Returns the part of the answers that the client may see. An agent may add related objects of other types than
    /// the requested ones.
    func view(_ permit: Permit) -> AccessView? {
        // A Return event has no object. It belongs to the call, whose parameters were checked.
        guard type(of: request).answersHaveObjects else { return nil }
        return permit.view(unlessEntirely: AccessRequest(verb: .request, pattern: pattern, target: .anyObject))
    }
}
