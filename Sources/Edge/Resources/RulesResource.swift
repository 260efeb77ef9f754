import Base
import Coaty
import Gate
import HTTPServer
import Network

/// `/v1/routing/contexts/{objectId}/rules`, `…/evaluate` and `…/explain`: the association rules of a
/// hosted context, and their results.
struct RulesResource: Sendable {
    private static let path = ContextsResource.path + "/{objectId}"

    let gate: Gate

    func register(in router: inout GatewayRouter) {
        router.on(.get, Self.path + "/rules") { [gate] request, principal in
            let id = request.contextId
            return .awaiting {
                let rules = try await gate.perform(ReadRules(id: id), by: principal)
                return .json(Array(#"{"rules":"#.utf8) + rules + "}".utf8, version: EntityTag(rules))
            }
        }
        router.on(.put, Self.path + "/rules") { [gate] request, principal in
            let id = request.contextId
            return answer(request) { body, ifMatch throws(PayloadError) in
                try body.refuseMembers(besides: ["rules"])
                guard let list = body["rules"] else { throw .invalid(pointer: "/rules", reason: "missing") }
                let operation = ReplaceRules(id: id, rules: try IoAssociationRule.rules(list), ifMatch: ifMatch)
                return {
                    let replaced = try await gate.perform(operation, by: principal)
                    var json = Array(#"{"rules":"#.utf8) + replaced.text
                    json += #","associations":\#(try PayloadCoder.encode(replaced.changes))"#.utf8
                    json += #","deferred":\#(replaced.isDeferred)}"#.utf8
                    return .json(json, version: EntityTag(replaced.text))
                }
            }
        }
        router.on(.post, Self.path + "/evaluate") { [gate] request, principal in
            let id = request.contextId
            return answer(request) { body, _ throws(PayloadError) in
                try body.refuseMembers(besides: ["context", "rules"])
                let rules = try body["rules"].map { list throws(PayloadError) in try IoAssociationRule.rules(list) }
                let context = body["context"]
                if let context, context.kind != .object { throw context.invalid("must be an object") }
                let operation = EvaluateRules(id: id, context: context, rules: rules)
                return {
                    let changes = try await gate.perform(operation, by: principal)
                    return .json(Array(#"{"associations":\#(try PayloadCoder.encode(changes))}"#.utf8))
                }
            }
        }
        router.on(.get, Self.path + "/explain", query: ["ioSourceId", "ioActorId"]) { [gate] request, principal in
            let id = request.contextId
            let parameters = QueryParameters(request, limits: gate.limits)
            do {
                let operation = ExplainAssociation(
                    id: id,
                    source: CoatyUUID(wire: try parameters.required("ioSourceId")),
                    actor: CoatyUUID(wire: try parameters.required("ioActorId"))
                )
                return .awaiting {
                    let explanation = try await gate.perform(operation, by: principal)
                    return .json(Array(try PayloadCoder.encode(explanation).utf8))
                }
            } catch {
                return .response(Problems.of(error).response())
            }
        }
    }

    /// Reads the body on the server's thread and answers asynchronously.
    private func answer(
        _ request: borrowing HTTPRequest,
        _ read: (JSONView, IfMatch?) throws(PayloadError) -> @Sendable () async throws -> HTTPResponse
    ) -> HTTPReply {
        guard request.hasContentType("application/json") else {
            return .response(Problems.unsupportedMediaType)
        }
        do {
            let ifMatch = try request.ifMatch
            let body = try Payload(request.body).json
            try body.checkValues()
            return .awaiting(try read(body, ifMatch))
        } catch {
            return .response(Problems.of(error).response())
        }
    }
}
