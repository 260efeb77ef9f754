import ArgumentParser
import Coaty

struct AgentsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "agents",
        abstract: "Print the agents, online and offline, each as a line of JSON.",
        discussion: """
            EXAMPLE:
              coaty-gateway agents --online

            \(Failure.exitCodes)
            """
    )

    @Flag(help: "Only online agents.")
    var online = false

    @OptionGroup(title: "Gateway") var gateway: GatewayOptions

    func run() throws {
        try Failure.reported {
            let answer = try gateway.request("/v1/agents", query: [("online", online ? "true" : nil)]).answer()
            guard let agents = try answer.json()["agents"] else { throw answer.failure }
            for agent in agents.elements { Output.line(agent.bytes) }
        }
    }
}

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Print the status and the counters of the gateway as JSON.",
        discussion: """
            EXAMPLE:
              coaty-gateway status --url https://gateway.example

            \(Failure.exitCodes)
            """
    )

    @OptionGroup(title: "Gateway") var gateway: GatewayOptions

    func run() throws {
        try Failure.reported {
            Output.line(try gateway.request("/v1/status").answer().json().bytes)
        }
    }
}
