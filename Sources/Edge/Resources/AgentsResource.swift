import Base
import Coaty
import Gate
import HTTPServer

/// `GET /v1/agents`: the agents of the network, online and offline.
struct AgentsResource: Sendable {
    let gate: Gate

    func register(in router: inout GatewayRouter) {
        router.on(.get, "/v1/agents", query: ["online"]) { request, principal in
            do {
                let isOnline = try QueryParameters(request, limits: gate.limits).boolean("online")
                let account = request.prefersGzip ? gate.account(of: principal) : nil
                return .listing(compressedFor: account) { isWanted in
                    let query = ReadAgents(isOnline: isOnline, isWanted: isWanted)
                    return Self.list(try await gate.perform(query, by: principal))
                }
            } catch {
                return .response(Problems.of(error).response())
            }
        }
    }

    private static func list(_ found: ReadAgents.Outcome) -> ListBody {
        ListBody(
            head: #"{"agents":["#,
            count: found.agents.count,
            element: { index in
                let agent = found.agents[index]
                let end = #","online":\#(agent.isOnline),"since":\#(agent.since)}"#
                return [Array(#"{"identity":"#.utf8), agent.identity, Array(end.utf8)]
            },
            tail: #"],"complete":\#(found.isComplete)\#(found.isFiltered ? #","filtered":true"# : "")}"#,
            holder: found.place
        )
    }
}
