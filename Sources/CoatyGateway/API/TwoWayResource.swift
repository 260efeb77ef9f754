import Coaty
import HTTPServer

/// `POST /v1/discover`, `/v1/query`, `/v1/update`, `/v1/call/{operation}`: ask the network, and collect the responses or
/// hand them on one by one.
struct TwoWayResource: Sendable {
    let hub: StreamHub
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

    /// - Parameter mustBeAnswered: whether it is a problem that nobody answers in time.
    private func answer(
        _ request: borrowing HTTPRequest,
        _ event: String,
        operation: String? = nil,
        mustBeAnswered: Bool = false
    ) -> HTTPReply {
        guard request.hasContentType("application/json") else { return .response(Problems.unsupportedMediaType) }
        do {
            let options = try RequestOptions(QueryParameters(request), maximumTimeout: maximumTimeout)
            guard let asked = try EventRequest(event: event, operation: operation, payload: Payload(request.body))
            else { return .response(Problems.notFound(request.path).response()) }
            if request.prefersNDJSON {
                // Behind the head there is no other status.
                guard hub.manager.isConnected else { return .response(Problems.brokerUnavailable) }
                return .stream(status: 200, headers: LineTransport.headers) { stream(asked, options, on: $0) }
            }
            return .later { pending in
                let sink = CollectedResponses(
                    pending,
                    memory: hub.waiting,
                    unanswered: mustBeAnswered
                        ? Problems.noAnswer("Nobody answered within \(options.timeout) ms.") : nil
                )
                do throws(CommunicationError) {
                    _ = try run(asked, options, into: sink)
                } catch {
                    pending.complete(Problems.response(error))
                }
            }
        } catch {
            return .response(Problems.response(error))
        }
    }

    private func run(
        _ asked: EventRequest,
        _ options: RequestOptions,
        into sink: any ResponseSink
    ) throws(CommunicationError) -> RequestRun {
        try asked.run(options, on: hub.manager, into: sink, count: hub.asked, onResolve: hub.objects.note)
    }

    private func stream(_ asked: EventRequest, _ options: RequestOptions, on stream: HTTPStream) {
        let outlet = Outlet(LineTransport(stream: stream), memory: hub.waiting, hasOneLane: true)
        let lane = outlet.open(id: nil, isHeld: false)
        stream.onRoom { outlet.pump() }
        do throws(CommunicationError) {
            let run = try run(asked, options, into: LaneSink(lane: lane, outlet: outlet))
            stream.onClose {
                outlet.close()
                run.cancel()
            }
        } catch {
            outlet.refuse(lane, Problems.of(error))
        }
    }
}
