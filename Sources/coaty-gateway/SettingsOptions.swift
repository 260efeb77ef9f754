import ArgumentParser
import Base
import CoatyGateway
import Foundation

/// The configuration file and the environment, from which the settings of the gateway come besides flags.
struct SettingsOptions: ParsableArguments {
    @Option(help: "YAML file with settings (COATY_GATEWAY_CONFIG).", completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    private var file: String? { config ?? ProcessInfo.processInfo.environment["COATY_GATEWAY_CONFIG"] }

    func settings(_ flags: SettingFlags? = nil) throws(InvalidConfiguration) -> GatewaySettings {
        try GatewaySettings(flags: flags?.values ?? [:], environment: ProcessInfo.processInfo.environment, file: file)
    }

    /// Returns the settings, or the error that the command line reports.
    func validSettings(_ flags: SettingFlags? = nil) throws -> GatewaySettings {
        do {
            return try settings(flags)
        } catch {
            throw Failure.invalid(error)
        }
    }

    /// Returns the base URL of the gateway for probes on the same machine.
    func probeAddress() throws(InvalidConfiguration) -> String {
        try GatewaySettings.probeAddress(environment: ProcessInfo.processInfo.environment, file: file)
    }
}
