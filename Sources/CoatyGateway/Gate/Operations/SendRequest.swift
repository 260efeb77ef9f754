import Access
import Base
import Coaty
import HTTPServer
import Network
import Synchronization

/// Publishes a request event, whose responses follow.
struct SendRequest: Operation {
    /// The memory of a pending request without its payload, in bytes: timers, the subscription to its responses, and
    /// queues.
    static let cost = 4 << 10

    let request: any ClientRequest
    let options: RequestOptions
    /// The identity that publishes; nil for the gateway's identity.
    var identity: ClientIdentity?

    var kind: OperationKind { OperationKind(verb: .request, pattern: pattern) }
    var admission: AdmissionRule { .standing }

    var payload: Payload? { request.payload }
    fileprivate var pattern: AccessPattern { type(of: request).pattern }

    func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        request.requestClaims(in: network, by: subject)
    }

    /// - Throws: `Problem` if the client has reached its limit of requests, memory or the outbox; `CommunicationError`
    ///   if the gateway is offline: a client must not wait until the broker is available.
    func execute(on target: Void, in network: NetworkParts, under permit: Permit) throws -> PermittedRequest {
        let manager = identity?.manager ?? network.manager
        guard manager.isConnected else {
            network.requestCount.countOne()
            throw CommunicationError.offline
        }
        let account = permit.account
        return PermittedRequest(
            operation: self,
            view: AnswerView(view(permit)),
            account: account,
            place: try account.take(.requests),
            charge: try account.charge(Self.cost + request.payload.footprint),
            outbox: OutboxPlace(
                try account.takeOutbox(request.payload.bytes.count, publications: request.names.count)
            ),
            manager: manager,
            network: network
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

/// A request that is allowed. Keep it as long as the request is pending: it contains the client's reserved place.
struct PermittedRequest: Sendable {
    let operation: SendRequest
    let view: AnswerView
    /// The account that is charged for the request.
    let account: ClientAccount
    fileprivate let place: Place
    fileprivate let charge: Charge
    fileprivate let outbox: OutboxPlace
    fileprivate let manager: CommunicationManager
    fileprivate let network: NetworkParts

    /// Publishes the request and passes its responses to the sink until it ends. Call it only once: the place in the
    /// outbox is for one publication.
    ///
    /// - Throws: `CommunicationError` if the request can't be published. The sink's `end` is then not called.
    func start(into sink: any ResponseSink) throws -> RequestRun {
        try run(operation.request, into: sink)
    }

    private func run(_ event: some ClientRequest, into sink: any ResponseSink) throws -> RequestRun {
        try RequestRun.start(
            event,
            operation.options,
            on: manager,
            holding: outbox.take(),
            into: sink,
            count: network.requestCount,
            client: account.work,
            memory: account.memory,
            workers: network.feeds.workers,
            isFiltered: view.isRestricted,
            visible: { [view, pattern = operation.pattern] in view.visible($0, of: pattern) },
            observe: { [network] in event.note($0, in: network) }
        )
    }
}

/// The place of a permitted request in the outbox, until the request is published. It is reserved earlier, because the
/// status of a stream can't change after its start.
private final class OutboxPlace: Sendable {
    private let place: Mutex<Place?>

    init(_ place: Place) { self.place = Mutex(place) }

    func take() -> Place? { place.withLock { $0.take() } }
}
