import ArgumentParser
import Foundation

/// Chooses the command. They are no subcommands of the gateway, whose options would take their `--name` and `--config`.
@main
enum Main {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch arguments.first {
        case "token": TokenCommand.main(Array(arguments.dropFirst()))
        case "access": AccessCommand.main(Array(arguments.dropFirst()))
        default: await GatewayCommand.main(arguments)
        }
    }
}
