import ArgumentParser
import CoatyGateway

struct HealthcheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "healthcheck",
        abstract: "Check whether the gateway on this machine runs.",
        discussion: """
            Finds the address in the environment and the file of "serve": host, port, plain-port and the TLS settings. If the port \
            is a flag of "serve", set COATY_GATEWAY_PORT for this command. Exits with 0 if the gateway responds to /healthz, and \
            with 1 otherwise. A gateway that requires client certificates or the PROXY protocol needs plain-port.

            EXAMPLE:
              coaty-gateway healthcheck --ready
            """
    )

    @Flag(help: "Also check that the gateway is connected to its broker (/readyz).")
    var ready = false

    @OptionGroup var settings: SettingsOptions

    func run() throws {
        do {
            // The certificate is for the name that clients use, not for the address of a probe on the same machine.
            let request = HTTPRequest(
                url: try settings.probeAddress() + (ready ? "/readyz" : "/healthz"),
                timeout: .seconds(3),
                verifiesCertificate: false,
                usesProxy: false
            )
            let answer = try request.answer()
            guard answer.status == 200 else { throw answer.failure }
        } catch {
            Output.report("\(error)")
            // Container engines reserve other codes.
            throw ExitCode(1)
        }
    }
}
