import Coaty
import HTTPServer

/// `GET /v1/agents`: who is there, and who was.
struct AgentsResource: Sendable {
    let registry: ObjectRegistry

    func register(in router: inout Router) {
        router.on(.get, "/v1/agents") { request in
            do throws(InvalidParameter) {
                return .response(answer(isOnline: try request.bool("online")))
            } catch {
                return .response(error.problem.response())
            }
        }
    }

    private func answer(isOnline: Bool?) -> HTTPResponse {
        var json = Array(#"{"agents":"#.utf8)
        let agents = registry.agents.lazy.filter { isOnline == nil || $0.isOnline == isOnline }
        JSONText.appendArray(agents, to: &json) { agent, json in
            json += #"{"identity":"#.utf8
            json += agent.identity
            json += #","online":\#(agent.isOnline),"since":\#(agent.since)}"#.utf8
        }
        return .json(json + #","isComplete":\#(registry.isComplete)}"#.utf8)
    }
}

extension HTTPRequest {
    /// A query parameter that may be given once, and is `true` or `false`.
    fileprivate func bool(_ name: String) throws(InvalidParameter) -> Bool? {
        guard let text = try InvalidParameter.single(name, queryItems.filter { $0.name == name }.map(\.value)) else {
            return nil
        }
        guard let value = Bool(text) else { throw InvalidParameter(name: name, reason: "must be true or false") }
        return value
    }
}
