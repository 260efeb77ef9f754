import ArgumentParser

struct CheckConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-config",
        abstract: "Check the settings without starting the gateway.",
        discussion: """
            Reads the environment and the file like "serve". Prints nothing and exits with 0 if they are valid; otherwise prints \
            the place and the reason, and exits with 64. It opens no port, and reads no TLS files.

            EXAMPLE:
              coaty-gateway check-config --config /etc/coaty-gateway/gateway.yaml
            """
    )

    @OptionGroup var settings: SettingsOptions

    func run() throws { _ = try settings.validSettings() }
}
