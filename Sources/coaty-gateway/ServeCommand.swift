import ArgumentParser
import Base
import CoatyGateway
import Foundation
import Logging
import Logs
import Synchronization

/// Runs the gateway until SIGTERM or SIGINT.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the gateway.",
        discussion: """
            Each option is also an environment variable (--host is COATY_GATEWAY_HOST) and a key of the configuration \
            file (host: 127.0.0.1), and docs/configuration.md describes it. A flag overrides the environment, which overrides the file, which overrides the default \
            in parentheses. COATY_GATEWAY_TOKEN sets a token that allows a client to do everything. There is no flag for it, because \
            other users of the machine can read flags. SIGHUP reloads the configuration (docs/operations.md).
            """
    )

    @OptionGroup var options: SettingsOptions

    @OptionGroup var flags: SettingFlags

    func run() async throws {
        Gateway.prepareProcess()
        let settings = try options.validSettings(flags)
        LoggingSystem.bootstrap { LogControl.standard.handler(label: $0) }
        LogControl.standard.apply(settings.log.lines)
        defer { LogControl.standard.finish() }
        let logger = Logger(label: "coaty-gateway")
        do {
            try await serve(settings, logger)
        } catch is CancellationError {
            return
        } catch let code as ExitCode {
            throw code
        } catch {
            logger.critical("the gateway ends because of an error", metadata: ["error": "\(error)"])
            throw ExitCode.failure
        }
    }

    private func serve(_ settings: GatewaySettings, _ logger: Logger) async throws {
        let (failures, failure) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingOldest(1))
        let gateway = try Gateway(
            settings: settings,
            logger: logger,
            readSettings: { () throws(InvalidConfiguration) in try options.settings(flags) },
            onFailure: { failure.yield() }
        )
        let signals = TerminationSignals {
            StopWatchdog.start(timeout: settings.stopTimeout) {
                logger.critical(
                    "the gateway does not stop in time: the process ends",
                    metadata: ["components": "\(gateway.stoppingComponents)"]
                )
                LogControl.standard.finish()
            }
        }
        let hasFailed = Atomic(false)
        Task {
            for await _ in failures {
                hasFailed.store(true, ordering: .relaxed)
                signals.begin()
            }
        }
        // Several signals are merged into one, and a signal that arrives before the gateway has started is queued.
        let (reloads, reload) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let reloading = ReloadSignal { reload.yield() }
        let starting = Task { try await gateway.start() }
        let stopping = Task {
            await signals.wait()
            // A start that waits for a broker ends immediately.
            starting.cancel()
            logger.info("stopping")
        }
        let running = try await starting.value
        Task {
            // The gateway itself logs errors.
            for await _ in reloads { _ = try? await gateway.reload() }
        }
        let report = StartReport(running, token: gateway.generatedToken, logger: logger)
        let reporting = Task { await report.write() }
        await stopping.value
        reporting.cancel()
        // Components that were left behind must not continue while the objects that they use are destroyed.
        if !(await gateway.stop()) {
            LogControl.standard.finish()
            _exit(1)
        }
        withExtendedLifetime(reloading) {}
        if hasFailed.load(ordering: .relaxed) { throw ExitCode.failure }
    }
}
