/// Asks for the execution of a remote operation.
public struct CallEvent: RequestEvent {
    /// `CLL`
    public static let eventType = CommunicationEventType.call

    /// The operation.
    public let operation: String
    /// `{parameters?, filter?}`
    public let payload: Payload
    /// Who asks.
    public let sourceId: CoatyUUID?
    /// Which request it is; nil for an event that was made here and not yet published.
    public let correlationId: CoatyUUID?
    /// Carries answers back; nil for an event that was made here.
    public var responder: Responder?

    private struct Body<Parameters: Encodable>: Encodable {
        let parameters: Parameters?
        let filter: ContextFilter?
    }

    /// Calls an operation with named parameters, or with none.
    ///
    /// - Parameters:
    ///   - operation: the name of the operation.
    ///   - parameters: the parameters by name.
    ///   - filter: whom the call is for: agents that observe the operation with a context match it against this.
    /// - Throws: ``CommunicationError/invalidName(_:)`` if the name is not valid.
    public static func with(
        operation: String,
        parameters: [String: AnyCodable]? = nil,
        filter: ContextFilter? = nil
    ) throws -> CallEvent {
        try CallEvent(operation: operation, payload: Payload(encoding: Body(parameters: parameters, filter: filter)))
    }

    /// Calls an operation with parameters by position.
    ///
    /// - Throws: ``CommunicationError/invalidName(_:)`` if the name is not valid.
    public static func with(
        operation: String,
        parameters: [AnyCodable],
        filter: ContextFilter? = nil
    ) throws -> CallEvent {
        try CallEvent(operation: operation, payload: Payload(encoding: Body(parameters: parameters, filter: filter)))
    }

    /// Takes a payload as it is.
    ///
    /// - Throws: ``PayloadError`` where the payload is not `{parameters?, filter?}`;
    ///   ``CommunicationError/invalidName(_:)`` if the operation is not a valid name.
    public init(operation: String, payload: Payload) throws {
        guard WireName.isPublishable(operation) else {
            throw CommunicationError.invalidName(operation)
        }
        try Self.check(payload)
        self.operation = operation
        self.payload = payload
        sourceId = nil
        correlationId = nil
    }

    /// Takes a payload that a person wrote: operators of the filter may be names, which go out as numbers. All other bytes
    /// stay as they are.
    ///
    /// - Throws: as ``init(operation:payload:)``, with the place in what the person wrote.
    package init(operation: String, personal payload: Payload) throws {
        try Self.check(payload, .person)
        try self.init(operation: operation, payload: payload.numberingOperators(of: payload.json["filter"]))
    }

    /// Reads an event that came in.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        try Self.check(payload)
        operation = address.name?.text ?? ""
        self.payload = payload
        sourceId = address.sourceId
        correlationId = address.correlationId
    }

    private static func check(_ payload: Payload, _ dialect: FilterDialect = .wire) throws(PayloadError) {
        try payload.check([])
        if let parameters = payload.json["parameters"], parameters.kind != .array, parameters.kind != .object {
            throw .invalid(parameters, "must be an array or an object")
        }
        if let filter = payload.json["filter"] { _ = try ContextFilter(filter, dialect) }
    }

    /// What the event asks for.
    public var data: CallEventData { CallEventData(payload: payload) }

    /// The operation.
    public var names: [EventName?] { [.name(WireName(operation))] }

    /// Every Return answers a Call.
    public func checkFits(_ response: ReturnEvent) throws(PayloadError) {}

    /// Answers the request. Several answers are allowed, for partial results.
    ///
    /// - Throws: ``CommunicationError`` where the answer can't be published.
    @discardableResult
    public func returnEvent(_ event: ReturnEvent) throws -> Delivery {
        try answer(event)
    }
}

/// What a Call event asks for.
public struct CallEventData: Sendable {
    let payload: Payload

    /// The parameters by position; nil where they are named or absent.
    public var parameterArray: [AnyCodable]? {
        guard let view = payload.json["parameters"], case .array(let elements) = AnyCodable(view) else { return nil }
        return elements
    }

    /// The parameters by name; nil where they go by position or are absent.
    public var parameterDictionary: [String: AnyCodable]? {
        guard let view = payload.json["parameters"], case .object(let members) = AnyCodable(view) else { return nil }
        return members
    }

    /// The parameter of a name.
    public func getParameterByName(name: String) -> AnyCodable? { parameterDictionary?[name] }

    /// The parameter at a position, from 0.
    public func getParameterByIndex(index: Int) -> AnyCodable? {
        guard let parameters = parameterArray, parameters.indices.contains(index) else { return nil }
        return parameters[index]
    }

    /// Whom the call is for; nil where it is for everybody.
    public var filter: ContextFilter? {
        // Checked when the event was made.
        payload.json["filter"].flatMap { try? ContextFilter($0) }
    }

    /// Whether the call is for an observer with a context, as agents in the field have it: an observer without one takes
    /// every call, one with a context those alone whose filter matches it.
    func isMeant(for context: JSONView?) -> Bool {
        guard let context else { return true }
        return filter?.matches(context) ?? false
    }
}
