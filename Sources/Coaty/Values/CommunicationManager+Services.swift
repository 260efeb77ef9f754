extension CommunicationManager {
    /// Maximum number of calls that ``answer(_:_:)`` handles at the same time. Further calls wait, as many as an
    /// ``EventStream`` keeps.
    static let maximumConcurrentCalls = 64

    /// Executes a remote operation, until the communication manager stops or the returned task is cancelled.
    ///
    /// ```swift
    /// try agent.answer("greet") { (person: Person) in "Hello, \(person.name)" }
    /// ```
    ///
    /// - Parameters:
    ///   - operation: the name of the operation.
    ///   - handler: executes a call. Its argument is decoded from the parameters: from named ones if its type decodes
    ///     an object, from positional ones if it decodes an array. Up to 64 calls are executed at the same time. A call
    ///     whose parameters do not match is answered with ``RemoteCallErrorCode/invalidParameters`` and the reason.
    /// - Throws: ``CommunicationError/invalidName(_:)``
    @discardableResult
    public func answer<Parameters: Decodable & Sendable, Result: Encodable & Sendable>(
        _ operation: String,
        _ handler: @escaping @Sendable (Parameters) async throws(ReturnError) -> Result
    ) throws -> Task<Void, Never> {
        let calls = try observeCall(operation: operation)
        let (logger, failures) = (logger, DoublingCounter())
        return Task {
            await Self.concurrently(calls) { call in
                do {
                    let outcome = try await call.outcome(handler)
                    // Otherwise the answer would be sent at the next start.
                    if calls.end == nil { try call.returnEvent(outcome) }
                } catch {
                    guard let count = failures.increment() else { return }
                    logger.warning(
                        "a call could not be answered",
                        metadata: ["operation": "\(operation)", "error": "\(error)", "so far": "\(count)"]
                    )
                }
            }
        }
    }

    /// Answers the Discover events for objects of a type, until the communication manager stops or the returned task is
    /// cancelled.
    ///
    /// - Parameter objects: returns the objects. Those that do not match the request, which may have an object id or an
    ///   external id, are not sent.
    @discardableResult
    public func answerDiscover<Content: CoatyContent>(
        _ objects: @escaping @Sendable () async -> [CoatyValue<Content>]
    ) -> Task<Void, Never> {
        let requests = observeDiscover()
        let (logger, failures) = (logger, DoublingCounter())
        return Task {
            await Self.concurrently(requests) { request in
                let asked = request.data
                guard asked.mayAsk(for: Content.self) else { return }
                for object in await objects() where asked.asks(for: object.core) {
                    do {
                        let answer = try ResolveEvent.with(object: object)
                        if requests.end == nil { try request.resolve(answer) }
                    } catch {
                        guard let count = failures.increment() else { continue }
                        logger.warning(
                            "a Discover event could not be answered",
                            metadata: ["object": "\(object.objectId)", "error": "\(error)", "so far": "\(count)"]
                        )
                    }
                }
            }
        }
    }

    /// Handles events at the same time, up to ``maximumConcurrentCalls``.
    private static func concurrently<Event: Sendable>(
        _ events: EventStream<Event>,
        _ handle: @escaping @Sendable (Event) async -> Void
    ) async {
        await withTaskGroup(of: Void.self) { group in
            var running = 0
            for await event in events {
                // Events that arrived before the end are not handled after it.
                guard events.end == nil else { break }
                if running == maximumConcurrentCalls { await group.next() } else { running += 1 }
                group.addTask { await handle(event) }
            }
        }
    }

    /// Calls a remote operation, and returns the result of the first agent that answers.
    ///
    /// The call is sent now or never: it is not queued for the next connection.
    ///
    /// - Parameters:
    ///   - operation: the name of the operation.
    ///   - parameters: named parameters if the type encodes an object, positional ones if it encodes an array.
    ///   - timeout: how long to wait for the answer.
    public func call<Parameters: Encodable, Result: Decodable>(
        _ operation: String,
        _ parameters: Parameters,
        timeout: Duration
    ) async throws(CallError) -> Result {
        guard !Task.isCancelled else { throw .cancelled }
        let (answers, continuation) = EventStream.makeStream(of: ReturnEvent.self) { $0.payload.footprint }
        let request: PendingRequest
        do {
            let payload = try Payload(encoding: ["parameters": parameters])
            let event = try CallEvent(operation: operation, payload: payload)
            request = try publish(event, onEnd: { continuation.finish(.stopped) }, handler: { continuation.yield($0) })
        } catch {
            throw .notSent(error)
        }
        defer { request.cancel() }
        // A deferred call may have left meanwhile.
        if request.delivery == .deferred, request.withdraw() { throw .notSent(CommunicationError.offline) }
        let deadline = Deadline(after: timeout) { continuation.finish(.timeLimit) }
        defer { deadline.cancel() }
        for await answer in answers {
            if let error = answer.data.error { throw .failed(error) }
            guard let result = answer.payload.json["result"] else { continue }
            do {
                return try PayloadCoder.decode(from: result)
            } catch {
                throw .unreadableResult(error)
            }
        }
        switch answers.end {
        case .timeLimit: throw .timeout
        case .cancelled: throw .cancelled
        case .stopped, .refused, nil: throw .disconnected
        }
    }
}

/// The reason why a remote call has no result.
public enum CallError: Error, Sendable {
    /// The call was not sent: ``CommunicationError/offline`` or another ``CommunicationError``; ``PayloadError`` or
    /// `EncodingError` if the parameters are neither an object nor an array.
    case notSent(any Error)
    /// No agent answered in time.
    case timeout
    /// The connection was lost, the broker refused the subscription of the answer, or the communication manager
    /// stopped, before an agent answered.
    case disconnected
    /// The calling task was cancelled.
    case cancelled
    /// The agent that answered has failed.
    case failed(ReturnError)
    /// The result has another type.
    case unreadableResult(any Error)
}

extension CallEvent {
    private static let noParameters = try? JSONDocument(Array("{}".utf8)).root

    /// Decodes the parameters, executes the call, and returns its result or error.
    fileprivate func outcome<Parameters: Decodable, Result: Encodable>(
        _ handler: (Parameters) async throws(ReturnError) -> Result
    ) async throws -> ReturnEvent {
        let parameters: Parameters
        do {
            guard let json = payload.json["parameters"] ?? Self.noParameters else {
                throw PayloadError.missing("parameters", in: payload.json)
            }
            parameters = try PayloadCoder.decode(from: json)
        } catch {
            return try .with(error: ReturnError(invalidParameters: error))
        }
        let result: Result
        do throws(ReturnError) {
            result = try await handler(parameters)
        } catch {
            return try .with(error: error)
        }
        do {
            return try ReturnEvent(payload: Payload(encoding: ["result": result]))
        } catch {
            // The internal error of JSON-RPC 2.0.
            return try .with(error: ReturnError(code: -32603, message: "the result can't be encoded"))
        }
    }
}

extension ReturnError {
    /// An error with the reason why the parameters do not match.
    fileprivate init(invalidParameters error: any Error) {
        let code = RemoteCallErrorCode.invalidParameters
        let context: DecodingError.Context? =
            switch error as? DecodingError {
            case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context),
                .dataCorrupted(let context):
                context
            default: nil
            }
        let place = context.map { $0.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue } } ?? []
        let reason = context?.debugDescription ?? "\(error)"
        let path = place.isEmpty ? "" : " at \(place.joined(separator: "."))"
        self.init(code: code.rawValue, message: "\(code.message): \(reason)\(path)")
    }
}

extension DiscoverEventData {
    /// Returns whether an object of a type may be asked for: by its type, or by an id alone.
    fileprivate func mayAsk<Content: CoatyContent>(for type: Content.Type) -> Bool {
        objectTypes?.contains(Content.objectType) ?? coreTypes?.contains(Content.coreType) ?? true
    }

    /// Returns whether an object of a type that may be asked for has the ids.
    fileprivate func asks(for core: ObjectCore) -> Bool {
        (objectId == nil || objectId == core.objectId) && (externalId == nil || externalId == core.externalId)
    }
}
