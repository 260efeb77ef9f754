import ArgumentParser

struct CheckConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-config",
        abstract: "Check the settings without starting the gateway.",
        discussion: """
            Reads the environment, the file, and the certificates and keys that they name, like "serve", and checks that the \
            state directory and the audit log can be written. Prints nothing and exits with 0 if they are valid; otherwise prints \
            the place and the reason, and exits with 64. It opens no port, and connects to nothing. Run it as the user of the \
            gateway, so that it needs the same permissions.

            EXAMPLE:
              coaty-gateway check-config --config /etc/coaty-gateway/gateway.yaml
            """
    )

    @OptionGroup var settings: SettingsOptions

    func run() throws {
        let settings = try settings.validSettings()
        do {
            try settings.checkFiles()
        } catch {
            throw Failure.invalid(error)
        }
    }
}
