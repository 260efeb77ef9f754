import Access
import Base
import Coaty
import Gate
import HTTPServer
import Network

/// `/v1/routing/contexts` and `/v1/routing/contexts/{objectId}`: the routed IO contexts.
struct ContextsResource: Sendable {
    static let path = "/v1/routing/contexts"
    static let defaultTimeout = 2000

    let gate: Gate

    func register(in router: inout GatewayRouter) {
        router.on(.get, Self.path) { [gate] _, principal in
            .awaiting { Self.list(try await gate.perform(ReadContexts(), by: principal)) }
        }
        router.on(.get, Self.path + "/{objectId}") { [gate] request, principal in
            let id = request.contextId
            return .awaiting {
                let snapshot = try await gate.perform(ReadContext(id: id), by: principal)
                var json: [UInt8] = []
                snapshot.append(to: &json)
                return .json(json, version: EntityTag(snapshot.json))
            }
        }
        router.on(.put, Self.path + "/{objectId}", query: ["timeout"]) { request, principal in
            guard request.hasContentType("application/json") else { return .response(Problems.unsupportedMediaType) }
            return update(request, principal) { .put($0) }
        }
        router.on(.patch, Self.path + "/{objectId}", query: ["timeout"]) { request, principal in
            guard request.hasContentType("application/merge-patch+json") || request.hasContentType("application/json")
            else { return .response(Problems.unsupportedPatchType) }
            return update(request, principal) { .patch($0) }
        }
    }

    private static func list(_ found: (contexts: [RoutingAdmin.Snapshot], isFiltered: Bool)) -> HTTPResponse {
        var json = Array(#"{"contexts":"#.utf8)
        JSONText.appendArray(found.contexts, to: &json) { $0.append(to: &$1) }
        return .json(json + "\(found.isFiltered ? #","filtered":true"# : "")}".utf8)
    }

    private func update(
        _ request: borrowing HTTPRequest,
        _ principal: Principal,
        _ change: (JSONView) -> RoutingAdmin.ContextChange
    ) -> HTTPReply {
        let id = request.contextId
        do {
            let limits = gate.limits
            let maximumTimeout = limits.timeout
            let timeout =
                try QueryParameters(request, limits: limits).milliseconds("timeout", in: 1...maximumTimeout)
                ?? min(Self.defaultTimeout, maximumTimeout)
            let ifMatch = try request.ifMatch
            let body = try Payload(request.body).json
            guard body.kind == .object else { throw PayloadError.invalid(pointer: "", reason: "must be an object") }
            try body.checkValues()
            let operation = UpdateContext(id: id, change: change(body), ifMatch: ifMatch, timeout: timeout)
            return .awaiting { [gate] in
                let updated = try await gate.perform(operation, by: principal)
                var json = Array(#"{"context":"#.utf8) + updated.context.bytes
                if let changes = updated.changes {
                    json += Array(#","associations":"#.utf8) + (try PayloadCoder.encode(changes)).utf8
                }
                json += #","deferred":\#(updated.isDeferred)}"#.utf8
                return .json(json, version: EntityTag(updated.context))
            }
        } catch {
            return .response(Problems.of(error).response())
        }
    }
}

extension RoutingAdmin.Snapshot {
    fileprivate func append(to json: inout [UInt8]) {
        json += #"{"context":"#.utf8
        json += self.json.bytes
        json += #","hosted":\#(isHosted)"#.utf8
        if let router {
            json += #","router":"#.utf8
            JSONText.append(router.string, to: &json)
        }
        json += #","otherRouters":"#.utf8
        JSONText.appendArray(otherRouters, to: &json) { JSONText.append($0.string, to: &$1) }
        json += #","nodes":"#.utf8
        JSONText.appendArray(nodes, to: &json) { $1 += $0.bytes }
        json += #","associations":"#.utf8
        // Encoding ids and rates never fails.
        json += ((try? PayloadCoder.encode(associations)) ?? "[]").utf8
        json += #","complete":\#(isComplete)"#.utf8
        json.append(UInt8(ascii: "}"))
    }
}
