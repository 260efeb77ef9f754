import Coaty
import HTTPServer

/// `POST /v1/discover`: asks the network and collects the answers.
struct DiscoverResource: Sendable {
    static let defaultTimeout = 2000
    static let defaultLimit = 1

    let manager: CommunicationManager
    /// In milliseconds.
    let maximumTimeout: Int
    let memory = CollectorMemory()

    func register(in router: inout Router) {
        router.on(.post, "/v1/discover") { request in
            guard request.hasContentType("application/json") else { return .response(Problems.unsupportedMediaType) }
            let event: DiscoverEvent
            let timeout: Int
            let limit: Int
            do {
                timeout =
                    try request.integer("timeout", in: 1...maximumTimeout)
                    ?? min(Self.defaultTimeout, maximumTimeout)
                limit = try request.integer("limit", in: 0...Int(Int32.max)) ?? Self.defaultLimit
                event = try DiscoverEvent(payload: Payload(request.body))
            } catch let error as InvalidParameter {
                return .response(error.problem.response())
            } catch {
                return .response(Problems.response(error))
            }
            return .later { pending in
                ResponseCollector.collect(
                    pending,
                    limit: limit,
                    timeout: .milliseconds(timeout),
                    ownId: manager.identityId,
                    memory: memory
                ) { (onEnd, handler) throws(CommunicationError) in
                    try manager.publish(event, onEnd: onEnd, handler: handler)
                }
            }
        }
    }
}
