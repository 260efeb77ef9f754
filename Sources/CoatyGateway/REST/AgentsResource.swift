import Coaty
import HTTPServer

/// `GET /v1/agents`: the agents of the network, online and offline.
struct AgentsResource: Sendable {
    let registry: ObjectRegistry

    func register(in router: inout Router) {
        router.on(.get, "/v1/agents") { request in
            do {
                return .response(answer(isOnline: try QueryParameters(request).boolean("online")))
            } catch {
                return .response(Problems.response(error))
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
        return .json(json + #","complete":\#(registry.isComplete)}"#.utf8)
    }
}
