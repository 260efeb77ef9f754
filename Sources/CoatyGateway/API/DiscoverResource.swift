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
                    try integer("timeout", of: request, in: 1...maximumTimeout)
                    ?? min(Self.defaultTimeout, maximumTimeout)
                limit = try integer("limit", of: request, in: 0...Int(Int32.max)) ?? Self.defaultLimit
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

    private func integer(
        _ name: String,
        of request: borrowing HTTPRequest,
        in range: ClosedRange<Int>
    ) throws(InvalidParameter) -> Int? {
        let values = request.queryItems.filter { $0.name == name }.map(\.value)
        guard let text = try InvalidParameter.single(name, values) else { return nil }
        guard let value = Int(text), range.contains(value), text.utf8.allSatisfy({ $0 != UInt8(ascii: "+") }) else {
            throw InvalidParameter(
                name: name,
                reason: "must be a whole number from \(range.lowerBound) to \(range.upperBound)"
            )
        }
        return value
    }
}
