import ArgumentParser
import CoatyGateway

struct DefaultConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "default-config",
        abstract: "Print a configuration file with every setting, commented out.",
        discussion: """
            EXAMPLE:
              coaty-gateway default-config > gateway.yaml
            """
    )

    func run() { print(GatewaySettings.defaultFile, terminator: "") }
}
