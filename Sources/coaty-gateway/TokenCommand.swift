import ArgumentParser
import CoatyGateway

/// Creates tokens.
struct TokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Create access tokens.",
        subcommands: [Create.self]
    )

    struct Create: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create a token, and print it with its line for the configuration file."
        )

        @Option(help: "Name of the token, for the audit log and ownership.")
        var name: String

        @Option(help: "Role of the token; repeat the option for several roles.")
        var role: [String]

        func run() throws {
            let created = NewToken(name: name, roles: role)
            print(
                """
                Token, to give to the client now (only its SHA-256 is stored):
                \(created.token)

                Line for access.tokens in the configuration file:
                \(created.line)
                """
            )
        }
    }
}
