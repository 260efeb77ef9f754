import Coaty
import HTTPServer

/// `POST /v1/discover`: asks the network, and collects the responses.
struct TwoWayResource: Sendable {
    let manager: CommunicationManager
    /// In milliseconds.
    let maximumTimeout: Int
    /// Is told each Resolve event that comes in.
    let onResolve: (@Sendable (ResolveEvent) -> Void)?
    private let memory = CollectorMemory()

    init(
        manager: CommunicationManager,
        maximumTimeout: Int,
        onResolve: (@Sendable (ResolveEvent) -> Void)? = nil
    ) {
        self.manager = manager
        self.maximumTimeout = maximumTimeout
        self.onResolve = onResolve
    }

    func register(in router: inout Router) {
        router.on(.post, "/v1/discover") { answer($0, "discover") }
    }

    private func answer(
        _ request: borrowing HTTPRequest,
        _ event: String,
        operation: String? = nil,
        mustBeAnswered: Bool = false
    ) -> HTTPReply {
        guard request.hasContentType("application/json") else { return .response(Problems.unsupportedMediaType) }
        do {
            let options = try RequestOptions(request, maximumTimeout: maximumTimeout)
            guard let asked = try EventRequest(event: event, operation: operation, payload: Payload(request.body))
            else { return .response(Problems.notFound(request.path).response()) }
            return .later { pending in
                let sink = CollectedResponses(
                    pending,
                    memory: memory,
                    unanswered: mustBeAnswered
                        ? Problems.noAnswer("Nobody answered within \(options.timeout) ms.") : nil
                )
                do throws(CommunicationError) {
                    _ = try asked.run(options, on: manager, into: sink, onResolve: onResolve)
                } catch {
                    pending.complete(Problems.response(error))
                }
            }
        } catch {
            return .response(Problems.response(error))
        }
    }
}
