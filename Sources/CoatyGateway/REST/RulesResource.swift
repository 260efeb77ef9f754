import Coaty
import HTTPServer

/// `/v1/routing/contexts/{objectId}/rules`, `…/evaluate` and `…/explain`: the association rules of a
/// hosted context, and their results.
struct RulesResource: Sendable {
    private static let path = ContextsResource.path + "/{objectId}"

    let admin: RoutingAdmin

    func register(in router: inout Router) {
        router.on(.get, Self.path + "/rules") { [admin] request in
            let id = request.contextId
            return .routing {
                let rules = try RoutingAdmin.json(admin.hosted(id).rules)
                return .json(Array(#"{"rules":"#.utf8) + rules + "}".utf8, version: EntityTag(rules))
            }
        }
        router.on(.put, Self.path + "/rules") { request in
            answer(request) { body, ifMatch throws(PayloadError) in
                try body.refuseMembers(besides: ["rules"])
                guard let list = body["rules"] else { throw .invalid(pointer: "/rules", reason: "missing") }
                let rules = try IoAssociationRule.rules(list)
                return { [admin] id in
                    let (text, changes) = try await admin.replaceRules(id, rules, ifMatch: ifMatch)
                    return .json(
                        Array(#"{"rules":"#.utf8) + text + #","associations":"#.utf8
                            + (try PayloadCoder.encode(changes)).utf8 + "}".utf8,
                        version: EntityTag(text)
                    )
                }
            }
        }
        router.on(.post, Self.path + "/evaluate") { request in
            answer(request) { body, _ throws(PayloadError) in
                try body.refuseMembers(besides: ["context", "rules"])
                let rules = try body["rules"].map { list throws(PayloadError) in try IoAssociationRule.rules(list) }
                let context = body["context"]
                if let context, context.kind != .object {
                    throw context.invalid("must be an object")
                }
                return { [admin] id in
                    do {
                        let changes = try await admin.evaluate(id, context: context, rules: rules)
                        return .json(Array(#"{"associations":\#(try PayloadCoder.encode(changes))}"#.utf8))
                    } catch PayloadError.invalid(let pointer, let reason) {
                        throw PayloadError.invalid(pointer: "/context" + pointer, reason: reason)
                    }
                }
            }
        }
        router.on(.get, Self.path + "/explain") { [admin] request in
            let id = request.contextId
            do {
                let parameters = QueryParameters(request)
                let source = CoatyUUID(wire: try parameters.required("ioSourceId"))
                let actor = CoatyUUID(wire: try parameters.required("ioActorId"))
                return .routing {
                    let router = try admin.hosted(id)
                    guard let explanation = router.explain(ioSourceId: source, ioActorId: actor) else {
                        let missing = router.ioSource(source) == nil ? "IO source \(source)" : "IO actor \(actor)"
                        throw RoutingAdmin.Failure.notFound("The context has no \(missing).")
                    }
                    return .json(Array(try PayloadCoder.encode(explanation).utf8))
                }
            } catch {
                return .response(Problems.response(error))
            }
        }
    }

    /// Reads the body on the server's thread and answers asynchronously.
    private func answer(
        _ request: borrowing HTTPRequest,
        _ read: (JSONView, IfMatch?) throws(PayloadError) ->
            @ControllerActor @Sendable (CoatyUUID) async throws -> HTTPResponse
    ) -> HTTPReply {
        guard request.hasContentType("application/json") else { return .response(Problems.unsupportedMediaType) }
        let id = request.contextId
        do {
            let ifMatch = try request.ifMatch
            let body = try Payload(request.body).json
            try body.checkValues()
            let answer = try read(body, ifMatch)
            return .routing { try await answer(id) }
        } catch {
            return .response(Problems.routing(error))
        }
    }
}
