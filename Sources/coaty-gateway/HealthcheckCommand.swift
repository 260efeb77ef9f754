import ArgumentParser
import CoatyGateway

struct HealthcheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "healthcheck",
        abstract: "Check whether the gateway on this machine runs.",
        discussion: """
            Reads the same settings as "serve", to find the address. Exits with 0 if the gateway answers /healthz, and with 1 \
            otherwise. A gateway that requires client certificates needs plain-port.

            EXAMPLE:
              coaty-gateway healthcheck --ready
            """
    )

    @Flag(help: "Also check that the gateway is connected to its broker (/readyz).")
    var ready = false

    @OptionGroup(title: "Settings") var settings: SettingsOptions

    func run() throws {
        guard let address = try settings.validSettings().probeAddress else {
            throw ValidationError("with port 0, the port of the gateway is not known")
        }
        // The certificate is for the name that clients use, not for the address of a probe on the same machine.
        let request = HTTPRequest(
            url: address + (ready ? "/readyz" : "/healthz"),
            timeout: .seconds(3),
            verifiesCertificate: false
        )
        do throws(Failure) {
            let answer = try request.answer()
            guard answer.status == 200 else { throw .refused(answer.problem) }
        } catch {
            Output.report("\(error)")
            // Container engines reserve other codes.
            throw ExitCode(1)
        }
    }
}
