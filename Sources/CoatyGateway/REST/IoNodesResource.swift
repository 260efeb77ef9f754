import Coaty
import HTTPServer

/// `/v1/io/nodes`: registers, lists and withdraws IO nodes, and renews their leases.
struct IoNodesResource: Sendable {
    let registry: IoNodeRegistry
    /// The communication manager of the gateway's own agent.
    let manager: CommunicationManager

    private static let path = "/v1/io/nodes"
    private static let headers = [(name: "Content-Type", value: "application/json"), ("Cache-Control", "no-store")]
    private static let withdrawn = HTTPResponse(status: 204)
    private static let tooLarge = Problems.contentTooLarge(
        "The registration of an IO node may have \(IoNodeRequest.maximumSize) bytes."
    ).response()
    private static let unknown = Problems.notRegistered("IO node").response()

    func register(in router: inout Router) {
        router.on(.post, Self.path) { request in
            guard request.hasContentType("application/json") else { return .response(Problems.unsupportedMediaType) }
            guard request.body.count <= IoNodeRequest.maximumSize else { return .response(Self.tooLarge) }
            let node: LeasedIoNode
            do {
                node = try registry.node(IoNodeRequest(Payload(request.body)))
            } catch {
                return .response(Problems.response(error))
            }
            // A node can't join while the gateway itself is offline.
            guard manager.isConnected else { return .response(Problems.brokerUnavailable) }
            return .later { pending in
                Task { pending.complete(await registered(node)) }
            }
        }
        router.on(.get, Self.path) { _ in
            let nodes = registry.all.map { $0.node.summary($0.lease) }
            return answer(Array(#"{"nodes":["#.utf8) + nodes.joined(separator: ",".utf8) + "]}".utf8)
        }
        router.on(.get, Self.path + "/{objectId}") { request in
            guard let (node, lease) = request.objectId.flatMap(registry.registered) else {
                return .response(Self.unknown)
            }
            return answer(Array("{".utf8) + node.members(lease) + #","states":\#(node.states)}"#.utf8)
        }
        router.on(.delete, Self.path + "/{objectId}") { request in
            guard let id = request.objectId, registry.registered(id) != nil else {
                return .response(Self.unknown)
            }
            return .later { pending in
                Task {
                    let isWithdrawn = await registry.withdraw(id)
                    pending.complete(isWithdrawn ? Self.withdrawn : Self.unknown)
                }
            }
        }
        router.on(.post, Self.path + "/{objectId}/lease") { request in renew(request) }
    }

    private func registered(_ node: LeasedIoNode) async -> HTTPResponse {
        do throws(IoNodeRegistry.Refusal) {
            let lease = try await registry.register(node)
            return HTTPResponse(
                status: 201,
                headers: Self.headers + [("Location", "\(Self.path)/\(node.objectId)")],
                body: Array("{".utf8) + node.members(lease) + "}".utf8
            )
        } catch {
            return Problems.response(error)
        }
    }

    private func renew(_ request: borrowing HTTPRequest) -> HTTPReply {
        // Also without a body: browsers send a preflight request before they send this media type to another origin.
        guard request.hasContentType("application/json") else { return .response(Problems.unsupportedMediaType) }
        var duration: Duration?
        if !request.body.isEmpty {
            do throws(PayloadError) {
                let body = try Payload(request.body).json
                try body.refuseMembers(besides: ["leaseDuration"])
                duration = try Lease.duration(in: body)
            } catch {
                return .response(Problems.of(error).response())
            }
        }
        guard let id = request.objectId, let lease = registry.renew(id, for: duration) else {
            return .response(Self.unknown)
        }
        return answer(Array(#"{"lease":\#(lease.json)}"#.utf8))
    }

    private func answer(_ body: [UInt8]) -> HTTPReply {
        .response(HTTPResponse(status: 200, headers: Self.headers, body: body))
    }
}

extension HTTPRequest {
    /// The id in the path; nil if it is not a UUID. Registered ids are always UUIDs.
    var objectId: CoatyUUID? { parameters["objectId"].flatMap(CoatyUUID.init(uuidString:)) }
}

extension Problems {
    static func response(_ refusal: IoNodeRegistry.Refusal) -> HTTPResponse {
        switch refusal {
        case .conflict(let pointer):
            conflict("\(pointer) is registered already.", pointer: pointer).response()
        case .tooMany(let limit):
            Problem(
                type: typePrefix + "too-many-io-nodes",
                title: "Too many IO nodes",
                status: 503,
                detail: "At most \(limit) IO nodes can be registered at a time."
            ).response(headers: [("Retry-After", String(retryAfter))])
        case .offline: brokerUnavailable
        case .stopped:
            Problem(type: typePrefix + "shutting-down", title: "Shutting down", status: 503).response()
        }
    }

    /// Returns the problem for an id that no client has registered, or whose registration has ended.
    static func notRegistered(_ what: String) -> Problem {
        notFound(detail: "No \(what) with this id is registered here.")
    }
}
