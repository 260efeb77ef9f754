import Coaty
import HTTPServer

/// `POST /v1/discover`, `/v1/query`, `/v1/update`, `/v1/call/{operation}`: publish a request event, and return the
/// responses together or, as NDJSON, one by one.
struct TwoWayResource: Sendable {
    let hub: FeedHub
    /// In milliseconds.
    let maximumTimeout: Int

    func register(in router: inout Router) {
        router.on(.post, "/v1/discover") { answer($0, "discover") }
        router.on(.post, "/v1/query") { answer($0, "query") }
        router.on(.post, "/v1/update") { answer($0, "update", mustBeAnswered: true) }
        router.on(.post, "/v1/call/{operation}") { request in
            let operation = request.parameters["operation"] ?? ""
            guard WireName.isPublishable(operation) else {
                return .response(Problems.invalidParameter("operation", InvalidParameter.level).response())
            }
            return answer(request, "call", operation: operation, mustBeAnswered: true)
        }
    }

    /// - Parameter mustBeAnswered: whether the response is a problem if nobody answers in time.
    private func answer(
        _ request: borrowing HTTPRequest,
        _ event: String,
        operation: String? = nil,
        mustBeAnswered: Bool = false
    ) -> HTTPReply {
        guard request.hasContentType("application/json") else { return .response(Problems.unsupportedMediaType) }
        do {
            let options = try RequestOptions(QueryParameters(request), maximumTimeout: maximumTimeout)
            guard
                let eventRequest = try EventRequest(event: event, operation: operation, payload: Payload(request.body))
            else { return .response(Problems.notFound(request.path).response()) }
            if request.prefersNDJSON {
                // The status can't change after the head is sent.
                guard hub.manager.isConnected else { return .response(Problems.brokerUnavailable) }
                return .stream(status: 200, headers: LineTransport.headers) { stream(eventRequest, options, on: $0) }
            }
            return .later { pending in
                let sink = CollectedResponses(
                    pending,
                    memory: hub.queueMemory,
                    unanswered: mustBeAnswered
                        ? Problems.noAnswer("No agent responded within \(options.timeout) ms.") : nil
                )
                do throws(CommunicationError) {
                    _ = try run(eventRequest, options, into: sink)
                } catch {
                    pending.complete(Problems.response(error))
                }
            }
        } catch {
            return .response(Problems.response(error))
        }
    }

    private func run(
        _ eventRequest: EventRequest,
        _ options: RequestOptions,
        into sink: any ResponseSink
    ) throws(CommunicationError) -> RequestRun {
        try eventRequest.run(options, on: hub.manager, into: sink, count: hub.asked, onResolve: hub.objects.note)
    }

    private func stream(_ eventRequest: EventRequest, _ options: RequestOptions, on stream: HTTPStream) {
        let outbound = OutboundQueue(LineTransport(stream: stream), memory: hub.queueMemory, hasOneSubscription: true)
        let subscription = outbound.open(id: nil, isHeld: false)
        stream.onRoom { outbound.pump() }
        do throws(CommunicationError) {
            let run = try run(
                eventRequest,
                options,
                into: ResponseQueue(subscription: subscription, outbound: outbound)
            )
            stream.onClose {
                outbound.close()
                run.cancel()
            }
        } catch {
            outbound.refuse(subscription, Problems.of(error))
        }
    }
}
