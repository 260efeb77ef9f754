import ArgumentParser
import Base
import CoatyGateway

/// The command line. Without a subcommand, it runs the gateway.
@main
struct CoatyGatewayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "coaty-gateway",
        abstract: "Gives HTTP and WebSocket clients access to a Coaty network.",
        discussion: """
            Without a subcommand, the settings of "serve" follow: coaty-gateway --port 8081. "coaty-gateway help serve" lists them.

            EXAMPLES:
              coaty-gateway --broker mqtt://broker.example:1883
              coaty-gateway discover '{"coreTypes":["Identity"]}' --limit 0
              coaty-gateway observe advertise objectType=com.example.Job
            """,
        version: BuildInfo().description,
        groupedSubcommands: [
            CommandGroup(
                name: "Gateway",
                subcommands: [
                    ServeCommand.self, LimitsCommand.self, CheckConfigCommand.self, DefaultConfigCommand.self,
                    HealthcheckCommand.self,
                ]
            ),
            CommandGroup(name: "Access", subcommands: [TokenCommand.self, AccessCommand.self]),
            CommandGroup(
                name: "Clients of a running gateway",
                subcommands: [
                    PublishCommand.self, DiscoverCommand.self, QueryCommand.self, CallCommand.self, ObserveCommand.self,
                    AgentsCommand.self, StatusCommand.self,
                ]
            ),
        ],
        defaultSubcommand: ServeCommand.self
    )

    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        if let refusal = refusal(of: arguments) ?? formerFlag(in: arguments) {
            Output.report(refusal)
            exit(withError: ExitCode.validationFailure)
        }
        await main(nil)
    }

    /// Returns what replaces a flag that "serve" had in earlier versions; nil if there is none.
    private static func formerFlag(in arguments: ArraySlice<String>) -> String? {
        guard let first = arguments.first, first == "serve" || first.hasPrefix("-") else { return nil }
        return arguments.prefix { $0 != "--" }.lazy.compactMap { argument -> String? in
            guard argument.hasPrefix("--") else { return nil }
            let name = String(argument.dropFirst(2).prefix { $0 != "=" })
            return GatewaySettings.limit(formerly: name).map { "--\(name) is now --limit \($0)=…" }
        }.first
    }

    /// Returns the reason for refusing the name of a command; nil if there is none. Without this, the name would be an
    /// unexpected argument of "serve".
    private static func refusal(of arguments: ArraySlice<String>) -> String? {
        var commands = configuration.subcommands
        for argument in arguments.first == "help" ? arguments.dropFirst() : arguments {
            guard !argument.hasPrefix("-"), !commands.isEmpty else { return nil }
            guard let command = commands.first(where: { $0._commandName == argument }) else {
                let reason = NearestName.refusal(of: argument, known: commands.map { $0._commandName })
                return "the command \(argument) \(reason)"
            }
            commands = command.configuration.subcommands
        }
        return nil
    }
}
