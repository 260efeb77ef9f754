import Base
package import Coaty
import DequeModule
import Synchronization

/// The requests that were recently observed, so that a client can answer one by its correlation id.
///
/// Bounded in number and bytes; the oldest requests are removed first.
package final class ObservedRequests: Sendable {
    private struct State {
        var requests: [CoatyUUID: any RequestEvent] = [:]
        var order: Deque<(id: CoatyUUID, size: Int)> = []
        var bytes = 0
    }

    private let limit: Int
    private let maximumBytes: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - limit: the maximum number of requests.
    ///   - maximumBytes: the maximum size of all requests in memory, in bytes.
    init(limit: Int, maximumBytes: Int) { (self.limit, self.maximumBytes) = (limit, maximumBytes) }

    func insert(_ request: some RequestEvent) {
        guard let id = request.correlationId else { return }
        // A correlation id can be as long as a topic.
        let size = request.payload.footprint + id.string.utf8.count
        state.withLock { state in
            // An Update event is received on two topics. A later request with the same id must not replace the first
            // one.
            guard state.requests[id] == nil else { return }
            state.requests[id] = request
            state.order.append((id, size))
            state.bytes += size
            while state.order.count > limit || state.bytes > maximumBytes,
                let oldest = state.order.popFirst()
            {
                state.requests[oldest.id] = nil
                state.bytes -= oldest.size
            }
        }
    }

    /// Returns a request; nil if it is not known.
    package func request(_ correlationId: CoatyUUID) -> (any RequestEvent)? {
        state.withLock { $0.requests[correlationId] }
    }
}

extension Problems {
    package static let noSuchRequestObserved = notFound(
        detail: "No request with this correlation id was delivered to you recently, or you have already answered it."
    )
}
