import ArgumentParser
import CoatyGateway

/// Explains the access configuration without a server.
struct AccessCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "access",
        abstract: "Examine the access configuration.",
        subcommands: [Explain.self]
    )

    struct Explain: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the grant that allows an operation, or the missing grant.",
            discussion: """
                The operation is the JSON of POST /v1/access/check, such as \
                {"publish":"advertise","object":{"coreType":"CoatyObject","objectType":"com.example.Lamp"}}.
                """
        )

        @Option(help: "YAML file with the access configuration.")
        var config: String

        @Option(
            name: .customLong("as"),
            help: "Role, or several, separated by commas; token:NAME or certificate:NAME; anonymous."
        )
        var subject: String

        @Argument(help: "Operation as JSON.")
        var operation: String

        func run() throws {
            do {
                print(try AccessExplainer.explanation(file: config, subject: subject, operation: operation))
            } catch {
                throw Failure.invalid(error)
            }
        }
    }
}
