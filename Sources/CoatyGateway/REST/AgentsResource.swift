import Coaty
import HTTPServer

/// `GET /v1/agents`: the agents of the network, online and offline.
struct AgentsResource: Sendable {
    let gate: Gate

    func register(in router: inout GatewayRouter) {
        router.on(.get, "/v1/agents") { request, principal in
            let parameters = QueryParameters(request)
            return .performing {
                let found = try gate.perform(ReadAgents(isOnline: parameters.boolean("online")), by: principal)
                return .json(Self.json(found))
            }
        }
    }

    private static func json(_ found: ReadAgents.Outcome) -> [UInt8] {
        var json = Array(#"{"agents":"#.utf8)
        JSONText.appendArray(found.agents, to: &json) { agent, json in
            json += #"{"identity":"#.utf8
            json += agent.identity
            json += #","online":\#(agent.isOnline),"since":\#(agent.since)}"#.utf8
        }
        return json + #","complete":\#(found.isComplete)\#(found.isFiltered ? #","filtered":true"# : "")}"#.utf8
    }
}
