import ArgumentParser
import Foundation

/// Selects the command. The commands are not subcommands of the gateway, because the options of the gateway would
/// consume their `--name` and `--config`.
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
