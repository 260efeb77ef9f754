import Base
import Coaty
import Gate
import HTTPServer
import Network
import ProblemDetails

/// `/v1/io/nodes`: registers, lists and withdraws IO nodes, and renews their leases.
struct IoNodesResource: Sendable {
    let gate: Gate

    private static let path = "/v1/io/nodes"
    private static let headers = [(name: "Content-Type", value: "application/json"), ("Cache-Control", "no-store")]
    private static let withdrawn = HTTPResponse(status: 204)

    func register(in router: inout GatewayRouter) {
        let limits = gate.limits
        let tooLarge = Problems.contentTooLarge(
            "The registration of an IO node may have at most \(limits.ioNodeSize) bytes, the limit maximum-io-node-size."
        ).response()
        router.on(.post, Self.path) { [gate] request, principal in
            guard request.hasContentType("application/json") else { return .response(Problems.unsupportedMediaType) }
            guard request.body.count <= limits.ioNodeSize else { return .response(tooLarge) }
            do throws(PayloadError) {
                let registration = RegisterIoNode(request: try IoNodeRequest(Payload(request.body), limits))
                return .awaiting {
                    let (node, lease) = try await gate.perform(registration, by: principal)
                    return HTTPResponse(
                        status: 201,
                        headers: Self.headers + [("Location", "\(Self.path)/\(node.objectId)")],
                        body: Array("{".utf8) + node.members(lease) + "}".utf8
                    )
                }
            } catch {
                return .response(Problems.of(error).response())
            }
        }
        router.on(.get, Self.path) { [gate] _, principal in
            .performing {
                let (nodes, isFiltered) = try gate.perform(ReadIoNodes(), by: principal)
                var json = Array(#"{"nodes":"#.utf8)
                JSONText.appendArray(nodes, to: &json) { $1 += $0.node.summary($0.lease) }
                return Self.answer(json + "\(isFiltered ? #","filtered":true"# : "")}".utf8)
            }
        }
        router.on(.get, Self.path + "/{objectId}") { [gate] request, principal in
            let id = request.objectId
            return .performing {
                let found = try gate.perform(ReadIoNode(id: id), by: principal)
                return Self.answer(
                    Array("{".utf8) + found.node.members(found.lease) + #","states":\#(found.node.states)}"#.utf8
                )
            }
        }
        router.on(.delete, Self.path + "/{objectId}") { [gate] request, principal in
            let id = request.objectId
            return .awaiting {
                try await gate.perform(WithdrawIoNode(id: id), by: principal)
                return Self.withdrawn
            }
        }
        router.on(.post, Self.path + "/{objectId}/lease") { [gate] request, principal in
            // Also without a body: browsers send a preflight request before they send this media type to another
            // origin.
            guard request.hasContentType("application/json") else { return .response(Problems.unsupportedMediaType) }
            let (id, body) = (request.objectId, request.body)
            return .awaiting {
                let duration = body.isEmpty ? nil : try Self.duration(Payload(body).json)
                let lease = try await gate.perform(RenewIoNode(id: id, duration: duration), by: principal)
                return Self.answer(Array(#"{"lease":\#(lease.json)}"#.utf8))
            }
        }
    }

    private static func duration(_ body: JSONView) throws(PayloadError) -> Duration? {
        try body.refuseMembers(besides: ["leaseDuration"])
        return try Lease.duration(in: body)
    }

    private static func answer(_ body: [UInt8]) -> HTTPResponse {
        HTTPResponse(status: 200, headers: headers, body: body)
    }
}

extension HTTPRequest {
    /// The id in the path; nil if it is not a UUID. Registered ids are always UUIDs.
    var objectId: CoatyUUID? { parameters["objectId"].flatMap(CoatyUUID.init(uuidString:)) }
}
