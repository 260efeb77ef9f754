import Base
import Foundation
import Glibc
import Logging
import Synchronization

/// Runs a mosquitto process from start to stop, on a separate thread.
///
/// The parent-death signal, which ends the broker together with the gateway, is sent when the *thread* that spawned the
/// child ends. Therefore one thread spawns, watches and reaps all children of this object, and ends after the last of
/// them. A pool thread is not suitable.
final class BrokerSupervisor: Sendable {
    /// Maximum time for a spawned broker to answer.
    static let startLimit = Duration.seconds(10)
    /// Maximum time for a broker to exit after SIGTERM, before it is killed.
    static let stopLimit = Duration.milliseconds(800)
    /// The pause before the first restart; doubles with each further one.
    static let firstRestartDelay = Duration.milliseconds(100)
    /// The longest pause before a restart.
    static let maxRestartDelay = Duration.seconds(10)
    /// A broker that has answered for this time is considered healthy: the number of restarts and the pause are reset.
    static let soundAfter = Duration.seconds(60)
    /// Interval of the probes while a broker starts. mosquitto answers after about 9 ms; a failed probe takes 0.1 ms.
    static let probeInterval = Duration.milliseconds(2)

    private struct State {
        var isStopRequested = false
        var hasEnded = false
        var waitingForEnd: [CheckedContinuation<Void, Never>] = []
        var address: EmbeddedBroker.Address?
        var processID: Int32?
    }

    private let configuration: EmbeddedBroker.Configuration
    private let logger: Logger
    private let state = Mutex(State())
    private let stopSignal: PollSignal
    private let onGivenUp: @Sendable () -> Void

    /// - Parameter onGivenUp: called on the thread, after its work has ended, when the broker is no longer restarted.
    init(
        configuration: EmbeddedBroker.Configuration,
        logger: Logger,
        onGivenUp: @escaping @Sendable () -> Void
    ) throws {
        self.configuration = configuration
        self.logger = logger
        self.onGivenUp = onGivenUp
        stopSignal = try PollSignal()
    }

    var address: EmbeddedBroker.Address? { state.withLock { $0.address } }
    var processID: Int32? { state.withLock { $0.processID } }

    /// Starts the broker. Call it only once.
    func start() async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { started in
                let thread = Thread { self.main(started) }
                thread.name = "broker"
                thread.start()
            }
        } onCancel: {
            requestStop()
        }
    }

    /// Stops the broker, and returns when the thread has finished.
    func stop() async {
        requestStop()
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                if !state.hasEnded { state.waitingForEnd.append(continuation) }
                return state.hasEnded
            }
            if hasEnded { continuation.resume() }
        }
    }

    private func requestStop() {
        let isFirst = state.withLock { state in
            defer { state.isStopRequested = true }
            return !state.isStopRequested
        }
        if isFirst { stopSignal.raise() }
    }

    private var isStopRequested: Bool { state.withLock { $0.isStopRequested } }
}

// MARK: - On the thread

extension BrokerSupervisor {
    private func main(_ started: CheckedContinuation<Void, any Error>) {
        do {
            let launcher = try BrokerLauncher(configuration: configuration)
            let (child, address) = try startOnFreePort(launcher)
            state.withLock { $0.address = address.forLocalClients }
            logger.info("embedded broker answers", metadata: ["address": "\(address)"])
            if !address.isLoopback {
                logger.warning(
                    "embedded broker accepts every client that reaches it over the network",
                    metadata: ["address": "\(address)"]
                )
            }
            started.resume()
            let isGivenUp = supervise(child, launcher, address)
            end()
            if isGivenUp { onGivenUp() }
        } catch {
            end()
            started.resume(throwing: error)
        }
    }

    private func end() {
        let waiting = state.withLock { state in
            state.hasEnded = true
            state.address = nil
            defer { state.waitingForEnd = [] }
            return state.waitingForEnd
        }
        for continuation in waiting { continuation.resume() }
    }

    private func startOnFreePort(_ launcher: BrokerLauncher) throws -> (BrokerChild, EmbeddedBroker.Address) {
        let wanted = configuration.listen
        for attempt in 0..<configuration.maxPortAttempts {
            let port = wanted.port == 0 ? 0 : Int(wanted.port) + attempt
            guard let port = UInt16(exactly: port) else { break }
            let candidate = EmbeddedBroker.Address(host: wanted.host, port: port)
            guard let address = try candidate.freePort() else {
                let isLast = attempt == configuration.maxPortAttempts - 1
                logger.log(
                    level: isLast ? .debug : .notice,
                    "another program uses this port; the embedded broker takes the next one",
                    metadata: ["address": "\(candidate)"]
                )
                continue
            }
            do {
                return (try launch(launcher, address), address)
            } catch let error as EmbeddedBrokerError {
                // Between the check and mosquitto's own bind, another process may have taken the port.
                guard try address.freePort() == nil else { throw error }
            }
        }
        throw EmbeddedBrokerError.noFreePort(first: wanted, attempts: configuration.maxPortAttempts)
    }

    /// Spawns a broker and waits until it answers. If it does not, it is ended before this throws.
    private func launch(_ launcher: BrokerLauncher, _ address: EmbeddedBroker.Address) throws -> BrokerChild {
        let probe = BrokerProbe(address: address.forLocalClients)
        let directory = try launcher.makeDirectory()
        defer { directory.remove() }
        let child = try launcher.spawn(on: address, in: directory, awaitedText: probe.clientID, logger: logger)
        state.withLock { $0.processID = child.pid }
        do {
            let deadline = ContinuousClock.now + Self.startLimit
            var isAnswered = false
            // Another broker on this port may have answered; the spawned broker logs the client's connection.
            while !(isAnswered && child.hasLoggedAwaitedText) {
                child.watch(for: Self.probeInterval, orUntil: stopSignal)
                if isStopRequested { throw CancellationError() }
                if let status = child.exitStatus {
                    throw EmbeddedBrokerError.notServing(address, reason: "ended, \(status)", log: child.lastLines)
                }
                if ContinuousClock.now > deadline {
                    let reason = "did not answer within \(Self.startLimit)"
                    throw EmbeddedBrokerError.notServing(address, reason: reason, log: child.lastLines)
                }
                if !isAnswered { isAnswered = probe.isAnswered() }
            }
            return child
        } catch {
            end(child)
            throw error
        }
    }

    /// Restarts the broker whenever it ends, and returns after it was stopped on request or given up.
    ///
    /// - Returns: whether the broker was given up.
    private func supervise(_ first: BrokerChild, _ launcher: BrokerLauncher, _ address: EmbeddedBroker.Address) -> Bool
    {
        var child: BrokerChild? = first
        var answeredSince = ContinuousClock.now
        var delay = Self.firstRestartDelay
        var restarts = 0
        while true {
            if let running = child {
                running.watch(for: nil, orUntil: stopSignal)
                if isStopRequested {
                    end(running)
                    return false
                }
                guard let status = running.exitStatus else { continue }
                end(running)
                child = nil
                if ContinuousClock.now - answeredSince > Self.soundAfter {
                    (delay, restarts) = (Self.firstRestartDelay, 0)
                }
                logger.warning("embedded broker ended by itself", metadata: ["status": "\(status)"])
            }
            guard restarts < configuration.maxRestarts else {
                logger.error("embedded broker is given up", metadata: ["restarts": "\(restarts)"])
                return true
            }
            restarts += 1
            stopSignal.wait(for: delay)
            if isStopRequested { return false }
            delay = min(delay * 2, Self.maxRestartDelay)
            do {
                child = try launch(launcher, address)
                answeredSince = ContinuousClock.now
                logger.info("embedded broker answers again", metadata: ["address": "\(address)"])
            } catch is CancellationError {
                return false
            } catch {
                logger.error("embedded broker cannot be restarted", metadata: ["error": "\(error)"])
            }
        }
    }

    private func end(_ child: BrokerChild) {
        child.end(within: Self.stopLimit)
        state.withLock { $0.processID = nil }
    }
}
