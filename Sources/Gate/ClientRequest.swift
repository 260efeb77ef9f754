package import Access
package import Coaty

/// A two-way event pattern as clients use it: they publish its requests, and answer those that they observe.
///
/// A new pattern conforms, and is added to ``ClientRequests/types``. To be observed, it also needs a case of
/// `Observation` and its subscription in `FeedUpstream`.
package protocol ClientRequest: RequestEvent {
    /// The pattern in grants.
    static var pattern: AccessPattern { get }
    /// Whether the client names a remote operation beside the payload.
    static var hasOperation: Bool { get }
    /// Whether a client can repeat the request by its `Idempotency-Key` without another effect.
    static var takesIdempotencyKey: Bool { get }
    /// Whether the answers have objects, of which a client may be allowed to see some only.
    static var answersHaveObjects: Bool { get }

    /// Creates the event from a payload with no unknown members. The operators of its filter may be names.
    ///
    /// - Parameter operation: the remote operation, if the pattern has one.
    /// - Throws: ``PayloadError`` with a pointer into the payload; ``CommunicationError/invalidName(_:)`` if the
    ///   operation is not allowed in a topic.
    static func request(_ payload: Payload, operation: String?) throws -> Self

    /// Creates the answer from a payload with no unknown members.
    ///
    /// - Throws: ``PayloadError``
    static func response(_ payload: Payload) throws -> Response

    /// The claims of a client that publishes the request.
    func requestClaims(in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest]

    /// The claims of a client that answers the request with no object.
    var answerClaims: [AccessRequest] { get }

    /// Records a response in the network's state.
    func note(_ response: Response, in network: NetworkParts)
}

extension ClientRequest {
    package static var hasOperation: Bool { false }
    package static var takesIdempotencyKey: Bool { false }
    package static var answersHaveObjects: Bool { true }

    package func note(_ response: Response, in network: NetworkParts) {}

    /// The claims of a client that answers: those for the objects of the answer, or for the request if it has none.
    func answerClaims(with content: Payload) -> [AccessRequest] {
        let objects = Self.answersHaveObjects ? content.allObjects : []
        return objects.isEmpty ? answerClaims : AccessRequest.objects(.answer, Self.pattern, objects)
    }

    /// The path of the request over HTTP.
    package static var path: String { "/v1/\(eventType.name)" + (hasOperation ? "/{operation}" : "") }
}

/// The two-way patterns.
package enum ClientRequests {
    package static let types: [any ClientRequest.Type] = [
        DiscoverEvent.self, QueryEvent.self, UpdateEvent.self, CallEvent.self,
    ]
    /// The names of the requests in frames and paths.
    package static let names = types.map { $0.eventType.name }.sorted()
    /// The event types of the answers.
    package static let answers = types.compactMap { $0.eventType.responseType }

    /// Returns the pattern with a name in frames and paths.
    package static func type(named name: String) -> (any ClientRequest.Type)? {
        types.first { $0.eventType.name == name }
    }

    /// Returns the pattern of which an event type is the answer.
    static func type(answeredBy type: CommunicationEventType) -> (any ClientRequest.Type)? {
        types.first { $0.eventType.responseType == type }
    }
}

extension ClientRequest {
    /// Parses the payload of a client.
    ///
    /// - Throws: the errors of ``request(_:operation:)``; ``PayloadError`` if a member is unknown.
    package static func parse(_ payload: Payload, operation: String? = nil) throws -> any ClientRequest {
        try request(EventMembers.checked(payload, as: eventType), operation: operation)
    }
}

// MARK: - Patterns

extension DiscoverEvent: ClientRequest {
    package static var pattern: AccessPattern { .discover }

    package static func request(_ payload: Payload, operation: String?) throws -> DiscoverEvent {
        try DiscoverEvent(payload: payload)
    }

    package static func response(_ payload: Payload) throws -> ResolveEvent { try ResolveEvent(payload: payload) }

    package func requestClaims(in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        AccessRequest.types(.request, .discover, in: payload)
    }

    package var answerClaims: [AccessRequest] { AccessRequest.types(.answer, .discover, in: payload) }

    package func note(_ response: ResolveEvent, in network: NetworkParts) { network.objects.note(response) }
}

extension QueryEvent: ClientRequest {
    package static var pattern: AccessPattern { .query }

    package static func request(_ payload: Payload, operation: String?) throws -> QueryEvent {
        try QueryEvent(personal: payload)
    }

    package static func response(_ payload: Payload) throws -> RetrieveEvent { try RetrieveEvent(payload: payload) }

    package func requestClaims(in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        AccessRequest.types(.request, .query, in: payload)
    }

    package var answerClaims: [AccessRequest] { AccessRequest.types(.answer, .query, in: payload) }
}

extension UpdateEvent: ClientRequest {
    package static var pattern: AccessPattern { .update }
    package static var takesIdempotencyKey: Bool { true }

    package static func request(_ payload: Payload, operation: String?) throws -> UpdateEvent {
        try UpdateEvent(payload: payload)
    }

    package static func response(_ payload: Payload) throws -> CompleteEvent { try CompleteEvent(payload: payload) }

    package func requestClaims(in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        network.versions(of: header, .request, .update, by: subject)
    }

    package var answerClaims: [AccessRequest] {
        payload.json["object"].map { AccessRequest.objects(.answer, .update, [$0]) } ?? []
    }
}

extension CallEvent: ClientRequest {
    package static var pattern: AccessPattern { .call }
    package static var hasOperation: Bool { true }
    package static var takesIdempotencyKey: Bool { true }
    package static var answersHaveObjects: Bool { false }

    package static func request(_ payload: Payload, operation: String?) throws -> CallEvent {
        try CallEvent(operation: operation ?? "", personal: payload)
    }

    package static func response(_ payload: Payload) throws -> ReturnEvent { try ReturnEvent(payload: payload) }

    package func requestClaims(in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        [claim(.request)]
    }

    package var answerClaims: [AccessRequest] { [claim(.answer)] }

    /// The claim for the operation, whose payload conditions test as `request`.
    private func claim(_ verb: Verb) -> AccessRequest {
        AccessRequest(verb: verb, pattern: .call, target: .operation(WireName(operation)), request: payload.json)
    }
}
