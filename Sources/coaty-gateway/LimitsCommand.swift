import ArgumentParser
import CoatyGateway

/// Prints the limits.
struct LimitsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "limits",
        abstract: "List the limits, with their defaults.",
        discussion: """
            As a flag, a limit is --limit maximum-memory=1073741824; as an environment variable, \
            COATY_GATEWAY_MAXIMUM_MEMORY=1073741824; in the configuration file, maximum-memory: 1073741824 below limits:.

            \(list)
            """
    )

    private static var list: String {
        GatewaySettings.limits.map { "\($0.name) <\($0.placeholder)>\n\($0.help)" }.joined(separator: "\n\n")
    }

    func run() { print(Self.list) }
}
