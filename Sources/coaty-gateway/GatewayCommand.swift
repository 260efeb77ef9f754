import ArgumentParser
import CoatyGateway
import Foundation
import Logging

@main
struct GatewayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "coaty-gateway",
        abstract: "Lets anything that speaks HTTP or WebSocket take part in a Coaty network.",
        discussion: """
            Each option is also an environment variable (--host is COATY_GATEWAY_HOST) and a key of the configuration \
            file (host: 127.0.0.1). Flags go before the environment, that before the file, that before the defaults, \
            which stand in parentheses.
            """,
        version: Gateway.version
    )

    @Option(help: "YAML file with settings (COATY_GATEWAY_CONFIG).")
    var config: String?

    @OptionGroup var flags: SettingFlags

    func run() async throws {
        let environment = ProcessInfo.processInfo.environment
        let settings: GatewaySettings
        do {
            settings = try GatewaySettings(
                flags: flags.values,
                environment: environment,
                file: config ?? environment["COATY_GATEWAY_CONFIG"]
            )
        } catch {
            throw ValidationError("\(error)")
        }
        LoggingSystem.bootstrap(LogStream.handler)
        let logger = logger(settings.logLevel)
        let signals = TerminationSignals()
        let gateway = Gateway(settings: settings, logger: logger)
        do {
            let starting = Task { try await gateway.start() }
            let stopping = Task {
                await signals.wait()
                // A start that waits for a broker ends at once.
                starting.cancel()
                logger.info("stopping")
            }
            let (url, broker) = try await starting.value
            // Not print(): a supervisor that reads a pipe must get the line at once.
            let line = "coaty-gateway ready on \(url) (broker \(broker))"
            do {
                try FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8))
            } catch {
                logger.warning("standard output takes nothing", metadata: ["line": "\(line)"])
            }
            await stopping.value
            await gateway.stop()
        } catch is CancellationError {
            return
        } catch {
            logger.critical("\(error)")
            throw ExitCode.failure
        }
    }

    private func logger(_ level: Logger.Level) -> Logger {
        var logger = Logger(label: "coaty-gateway")
        logger.logLevel = level
        return logger
    }
}
