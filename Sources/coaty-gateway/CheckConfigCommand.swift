import ArgumentParser

struct CheckConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-config",
        abstract: "Check the settings without starting the gateway.",
        discussion: """
            Reads the same flags, environment and file as "serve". Prints nothing and exits with 0 if they are valid; otherwise prints \
            the place and the reason, and exits with 64. It opens no port, and reads no TLS files.

            EXAMPLE:
              coaty-gateway check-config --config /etc/coaty-gateway/gateway.yaml
            """
    )

    @OptionGroup(title: "Settings") var settings: SettingsOptions

    func run() throws { _ = try settings.validSettings() }
}
