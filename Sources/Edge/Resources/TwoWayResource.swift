import Access
import Base
import Coaty
import Gate
import HTTPServer

/// `POST /v1/discover`, `/v1/query`, `/v1/update`, `/v1/call/{operation}`: publish a request event, and return the
/// responses together or, as NDJSON, one by one.
struct TwoWayResource: Sendable {
    /// The templates of its routes. Their responses depend on the answers of agents.
    static let paths = Set(ClientRequests.types.map { $0.path })

    let services: ClientServices

    func register(in router: inout GatewayRouter) {
        let query = QueryNames.only(RequestOptions.parameters.union(["min"]))
        for type in ClientRequests.types {
            guard type.takesIdempotencyKey else {
                router.on(.post, type.path, query: query) { answer($0, $1, type) }
                continue
            }
            router.onPost(type.path, query: query, publishingBy: services.gate, canStream: true) {
                request,
                principal,
                claim in
                answer(request, principal, type, claim)
            }
        }
    }

    /// - Parameter claim: stores the answer; nil if the client can't repeat the request.
    private func answer(
        _ request: borrowing HTTPRequest,
        _ principal: Principal,
        _ type: any ClientRequest.Type,
        _ claim: IdempotencyClaim? = nil
    ) -> HTTPReply {
        let operation = type.hasOperation ? request.parameters["operation"] ?? "" : nil
        guard operation.map(WireName.isPublishable) ?? true else {
            return .response(Problems.invalidParameter("operation", InvalidParameter.level).response())
        }
        guard request.hasContentType("application/json") else { return .response(Problems.unsupportedMediaType) }
        do {
            let parameters = QueryParameters(request, limits: services.accounts.limits)
            let options = try RequestOptions(parameters)
            let minimum = try Self.minimum(parameters, options, isStream: request.prefersNDJSON)
            let event = try type.parse(Payload(request.body), operation: operation)
            // Before the first byte of a stream is sent, because the status can't change afterwards.
            let client = GateClient(services.gate, principal)
            let activity = try services.gate.open(SendRequest(request: event, options: options), for: client)
            if request.prefersNDJSON {
                return .stream(status: 200, headers: LineTransport.headers) { [services] stream in
                    let responses = SingleStream(LineTransport(stream: stream), .ndjson, client, principal, services)
                    stream.onRoom { responses.outbound.pump() }
                    stream.onClose { responses.close() }
                    responses.start(activity)
                }
            }
            let charge = activity.account.memory.chargeAnyway(0)
            return .later { pending in
                let sink = CollectedResponses(
                    answer: { response in
                        // Independent of its status, because the request was published.
                        pending.complete(claim?.keep(response, isCharged: true) ?? response)
                    },
                    charge: charge,
                    maximumBytes: activity.account.responseBytes,
                    minimum: minimum,
                    timeout: options.timeout,
                    outcome: activity.outcome
                )
                do {
                    try activity.start(into: sink)
                    // A client that repeats the request must get its answer.
                    if claim == nil { pending.onDeparture { client.leave() } }
                } catch {
                    claim?.free()
                    sink.release()
                    pending.complete(Problems.of(error).response())
                }
            }
        } catch {
            return .response(Problems.of(error).response())
        }
    }

    /// Returns the number of responses without which a timeout is a problem. To have none is no error: the gateway does not
    /// know which agents exist.
    private static func minimum(
        _ parameters: QueryParameters,
        _ options: RequestOptions,
        isStream: Bool
    ) throws -> Int {
        guard let minimum = try parameters.integer("min", in: RequestOptions.limits) else { return 0 }
        if isStream {
            throw parameters.invalid("min", "is not possible with NDJSON, whose status is sent before the responses")
        }
        guard options.limit == 0 || minimum <= options.limit else {
            throw parameters.invalid("min", "must not exceed limit, which is \(options.limit)")
        }
        return minimum
    }
}
