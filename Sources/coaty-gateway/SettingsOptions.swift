import ArgumentParser
import CoatyGateway
import Foundation

/// The settings of the gateway: flags, environment and configuration file.
struct SettingsOptions: ParsableArguments {
    @Option(help: "YAML file with settings (COATY_GATEWAY_CONFIG).", completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    @OptionGroup var flags: SettingFlags

    func settings() throws(ConfigurationError) -> GatewaySettings {
        let environment = ProcessInfo.processInfo.environment
        return try GatewaySettings(
            flags: flags.values,
            environment: environment,
            file: config ?? environment["COATY_GATEWAY_CONFIG"]
        )
    }

    /// Returns the settings, or the error that the command line reports.
    func validSettings() throws -> GatewaySettings {
        do {
            return try settings()
        } catch {
            throw ValidationError("\(error)")
        }
    }

    /// Returns the base URL of the gateway for probes on the same machine.
    func probeAddress() throws(ConfigurationError) -> String {
        let environment = ProcessInfo.processInfo.environment
        return try GatewaySettings.probeAddress(
            flags: flags.values,
            environment: environment,
            file: config ?? environment["COATY_GATEWAY_CONFIG"]
        )
    }
}
