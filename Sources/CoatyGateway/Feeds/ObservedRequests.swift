import Coaty
import DequeModule
import HTTPServer
import Synchronization

/// The requests that were recently delivered to clients, so that a client can answer one by its correlation id.
///
/// Bounded in number and bytes; the oldest requests are removed first.
final class ObservedRequests: Sendable {
    /// Names of the events that answer a request.
    static let responses = [CommunicationEventType.resolve, .retrieve, .complete, .return].map(\.name)

    /// Maximum number of requests.
    static let maximumRequests = 10_000
    /// Maximum size of all requests in memory, in bytes.
    static let maximumBytes = 16 << 20

    private struct State {
        var requests: [CoatyUUID: EventRequest] = [:]
        var order: Deque<(id: CoatyUUID, size: Int)> = []
        var bytes = 0
    }

    private let state = Mutex(State())

    func insert<Event: RequestEvent>(_ request: EventRequest, _ event: Event) {
        guard let id = event.correlationId else { return }
        let size = event.payload.footprint
        state.withLock { state in
            // An Update event is received on two topics. A later request with the same id must not replace the first one.
            guard state.requests[id] == nil else { return }
            state.requests[id] = request
            state.order.append((id, size))
            state.bytes += size
            while state.order.count > Self.maximumRequests || state.bytes > Self.maximumBytes,
                let oldest = state.order.popFirst()
            {
                state.requests[oldest.id] = nil
                state.bytes -= oldest.size
            }
        }
    }

    /// Publishes a response to an observed request.
    ///
    /// - Parameters:
    ///   - name: the name of the answering event.
    ///   - manager: publishes the response.
    /// - Throws: `Problem` if the request is not known, `PayloadError` if the response is invalid or does not match the
    ///   request, `CommunicationError` if it can't be published.
    func respond(
        to correlationId: CoatyUUID,
        with name: String,
        _ payload: Payload,
        by manager: CommunicationManager
    ) throws -> Delivery {
        guard let request = state.withLock({ $0.requests[correlationId] }) else { throw Problems.noSuchRequestObserved }
        switch request {
        case .discover(let event): return try answer(event, name, ResolveEvent(payload: payload), manager)
        case .query(let event): return try answer(event, name, RetrieveEvent(payload: payload), manager)
        case .update(let event): return try answer(event, name, CompleteEvent(payload: payload), manager)
        case .call(let event): return try answer(event, name, ReturnEvent(payload: payload), manager)
        }
    }

    private func answer<Event: RequestEvent>(
        _ request: Event,
        _ name: String,
        _ response: @autoclosure () throws -> Event.Response,
        _ manager: CommunicationManager
    ) throws -> Delivery {
        guard Event.Response.eventType.name == name else {
            let reason = "must be \(Event.Response.eventType.name)"
            throw Problems.of(PayloadError.invalid(pointer: "/event", reason: reason))
        }
        return try request.answered(by: manager).answer(response())
    }
}

extension Problems {
    static let noSuchRequestObserved = notFound(
        detail: "No request of this correlation id was observed here lately."
    )
}
