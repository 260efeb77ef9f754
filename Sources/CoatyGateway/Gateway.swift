import Access
public import Base
import Cluster
import Coaty
import CoatyMQTT
import Coordination
import Edge
import Gate
import HTTPServer
public import Logging
import Measurement
import Synchronization
import WebSocketServer

/// The gateway: a tree of coordinators for the broker, the gateway's session, IO nodes, WebSocket, REST and the port.
///
/// They start in this order and stop in reverse order, so that pending work completes before its dependencies stop.
public final class Gateway: Sendable {
    let settings: GatewaySettings
    let created = CoatyTimestamp.nowMillis()
    let logger: Logger
    let root: Coordinator<GatewayRoot>
    let stopClock: StopClock
    let heartbeat = Heartbeat()
    let spread: ReconnectSpread
    let mode: AccessMode
    let access: AccessControl
    let keyRefresher: KeyRefresher
    let audit: AuditLog
    let drain: Drain
    let metrics = Metrics()
    let use = HTTPUse()
    let idempotency = IdempotencyTable()
    let readSettings: @Sendable () throws(InvalidConfiguration) -> GatewaySettings
    /// Nil until all components have started.
    let reloader = Mutex<Reloader?>(nil)
    let pause = PauseState()
    /// Nil if the gateway is in no cluster.
    let clusterKey: ClusterKey?
    /// Nil if the port has no TLS.
    let certificates: CertificateStore?
    let requestLog: RequestLog

    /// Limits the memory that the allocator retains. Call it at the start of the process.
    public static func prepareProcess() { ResidentMemory.prepareAllocator() }

    /// Creates a gateway without starting it.
    ///
    /// - Parameters:
    ///   - readSettings: reads the settings again for a reload; nil if they can't change.
    ///   - onFailure: called, on any thread, when a required component has ended permanently. Then the gateway should
    ///     be stopped.
    /// - Throws: if the audit log can't be opened, the TLS files or the secret of the cluster can't be used, or a file
    ///   that `access.jwt` names contains no keys or no certificates.
    public init(
        settings: GatewaySettings,
        logger: Logger,
        readSettings: (@Sendable () throws(InvalidConfiguration) -> GatewaySettings)? = nil,
        onFailure: @escaping @Sendable () -> Void = {}
    ) throws {
        self.settings = settings
        self.logger = logger
        requestLog = RequestLog(settings.log.requests, logger: logger)
        self.readSettings = readSettings ?? { () throws(InvalidConfiguration) -> GatewaySettings in settings }
        mode = try AccessMode(settings, generate: RandomSecret.token)
        let access = AccessControl(.open, browserPolicy: settings.browserPolicy, logger: logger.labelled(.access))
        self.access = access
        keyRefresher = try KeyRefresher(
            limits: settings.limits,
            current: { access.policy.verifier?.keys },
            onRevocation: { access.review() },
            logger: logger.labelled(.access)
        )
        let verifier = try mode.jwt.map(keyRefresher.verifier)
        access.replace(mode.policy(settings, verifier: verifier))
        audit = try AuditLog(settings.auditLog, limits: settings.limits, logger: logger.labelled(.access))
        stopClock = StopClock(timeout: settings.stopTimeout)
        spread = ReconnectSpread(seconds: settings.limits.reconnectSpread)
        drain = Drain(delay: .seconds(settings.limits.drainDelay))
        clusterKey = try settings.clusterKeyFile.map(ClusterKey.init(file:))
        certificates = try settings.transport.tls.map { files in
            try CertificateStore(files, logger: logger.labelled(.tls))
        }
        let component = GatewayRoot { name in
            logger.critical("a component has failed: the gateway stops", metadata: ["component": "\(name)"])
            onFailure()
        }
        root = Coordinator(name: "gateway", component: component)
    }

    /// Starts all components and serves clients.
    ///
    /// Waits a few seconds for the broker, and then starts without it.
    ///
    /// - Throws: the error of the first component that can't start; all others are stopped.
    public func start() async throws -> RunningGateway {
        root.observe { [logger] change in
            logger.debug("\(change.coordinator.name): \(change.to)")
        }
        try await root.start()
        do {
            return try await startChildren()
        } catch {
            await root.stop()
            throw error
        }
    }

    /// The token that the gateway has created at start because none was configured; nil if it has not.
    public var generatedToken: String? {
        if case .token(let token, isGenerated: true) = mode { token } else { nil }
    }

    /// Reads the settings again and applies either all changes or none. Logs the result.
    ///
    /// The settings that can change are access, shares of clients, log level, rules, and the policy for web pages;
    /// other changes need a restart. The TLS files are loaded again, and the audit log is opened again.
    ///
    /// - Returns: the names of the settings that have changed.
    /// - Throws: ``InvalidConfiguration``; then nothing has changed.
    @discardableResult
    public func reload() async throws(InvalidConfiguration) -> [String] {
        guard let reloader = reloader.withLock(\.self) else {
            throw InvalidConfiguration(description: "the gateway has not started")
        }
        return try await reloader.reload()
    }

    /// Stops all components in order: refuses new work, completes pending work, closes WebSockets, leaves the network.
    /// Takes less than the stop timeout: a component that does not stop in its share of the time delays no other one, and
    /// is abandoned when the time is over.
    ///
    /// - Returns: whether all components have stopped.
    @discardableResult
    public func stop() async -> Bool {
        await root.stop()
        return await stopClock.untilStopped()
    }

    /// Names of the components that are stopping or do not stop.
    public var stoppingComponents: [String] { stopClock.stopping }
}
