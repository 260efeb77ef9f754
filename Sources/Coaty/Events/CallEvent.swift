/// Requests the execution of a remote operation.
public struct CallEvent: RequestEvent {
    /// `CLL`
    public static let eventType = CommunicationEventType.call

    /// The operation.
    public let operation: String
    /// `{parameters?, filter?}`
    public var payload: Payload { data.payload }
    /// The event's data.
    public let data: CallEventData
    /// The agent that sends the request.
    public let sourceId: CoatyUUID?
    /// The id of the request; nil for a local event that is not yet published.
    public let correlationId: CoatyUUID?
    /// Sends answers to the requester; nil for a local event.
    public var responder: Responder?

    private struct Body<Parameters: Encodable>: Encodable {
        let parameters: Parameters?
        let filter: ContextFilter?
    }

    /// Creates a call with named parameters, or with none.
    ///
    /// - Parameters:
    ///   - operation: the name of the operation.
    ///   - parameters: the parameters by name.
    ///   - filter: selects the agents that the call is for: agents that observe the operation with a context match it
    ///     against this filter.
    /// - Throws: ``CommunicationError/invalidName(_:)`` if the name is not valid.
    public static func with(
        operation: String,
        parameters: [String: AnyCodable]? = nil,
        filter: ContextFilter? = nil
    ) throws -> CallEvent {
        try CallEvent(operation: operation, payload: Payload(encoding: Body(parameters: parameters, filter: filter)))
    }

    /// Creates a call with positional parameters.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)`` if the name is not valid.
    public static func with(
        operation: String,
        parameters: [AnyCodable],
        filter: ContextFilter? = nil
    ) throws -> CallEvent {
        try CallEvent(operation: operation, payload: Payload(encoding: Body(parameters: parameters, filter: filter)))
    }

    /// Creates an event with an unchanged payload.
    ///
    /// - Throws: ``PayloadError`` if the payload is not `{parameters?, filter?}`;
    ///   ``CommunicationError/invalidName(_:)`` if the operation is not a valid name.
    public init(operation: String, payload: Payload) throws {
        guard WireName.isPublishable(operation) else {
            throw CommunicationError.invalidName(operation)
        }
        data = try CallEventData(payload)
        self.operation = operation
        sourceId = nil
        correlationId = nil
    }

    /// Creates an event from a payload that a person wrote: operators of the filter may be names, which are sent as
    /// numbers. All other bytes stay unchanged.
    ///
    /// - Throws: the errors of ``init(operation:payload:)``, with a place in the original text.
    package init(operation: String, personal payload: Payload) throws {
        _ = try CallEventData(payload, .person)
        try self.init(operation: operation, payload: payload.numberingOperators(of: payload.json["filter"]))
    }

    /// Decodes a received event.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        data = try CallEventData(payload)
        operation = address.name?.text ?? ""
        sourceId = address.sourceId
        correlationId = address.correlationId
    }

    /// The operation, as the only name.
    public var names: [EventName?] { [.name(WireName(operation))] }

    /// Accepts every response: each Return event answers a Call event.
    public func checkFits(_ response: ReturnEvent) throws(PayloadError) {}

    /// Answers the request. Several answers are allowed, for partial results.
    ///
    /// - Throws: ``CommunicationError`` if the answer can't be published.
    @discardableResult
    public func returnEvent(_ event: ReturnEvent) throws -> Delivery {
        try answer(event)
    }
}

/// The data of a Call event.
public struct CallEventData: Sendable {
    let payload: Payload
    /// Selects the agents that the call is for; nil if it is for all agents.
    public let filter: ContextFilter?

    /// Checks the payload of an event.
    fileprivate init(_ payload: Payload, _ dialect: FilterDialect = .wire) throws(PayloadError) {
        try payload.check([])
        if let parameters = payload.json["parameters"], parameters.kind != .array, parameters.kind != .object {
            throw .invalid(parameters, "must be an array or an object")
        }
        self.payload = payload
        filter = if let filter = payload.json["filter"] { try ContextFilter(filter, dialect) } else { nil }
    }

    /// The positional parameters; nil if they are named or absent.
    public var parameterArray: [AnyCodable]? {
        guard let view = payload.json["parameters"], case .array(let elements) = AnyCodable(view) else { return nil }
        return elements
    }

    /// The named parameters; nil if they are positional or absent.
    public var parameterDictionary: [String: AnyCodable]? {
        guard let view = payload.json["parameters"], case .object(let members) = AnyCodable(view) else { return nil }
        return members
    }

    /// Returns the parameter with a name.
    public func getParameterByName(name: String) -> AnyCodable? {
        payload.json["parameters"]?.member(named: name).map { AnyCodable($0) }
    }

    /// Returns the parameter at a position, from 0.
    public func getParameterByIndex(index: Int) -> AnyCodable? {
        payload.json["parameters"]?.element(at: index).map { AnyCodable($0) }
    }

    /// Returns whether the call is for an observer with a context. As in other implementations, an observer without a
    /// context receives every call, and an observer with a context only calls whose filter matches it.
    func isMeant(for context: JSONView?) -> Bool {
        guard let context else { return true }
        return filter?.matches(context) ?? false
    }
}
