import Access
import Base
import Coaty
import Edge
import Logging
import Logs
import Network
import Synchronization

/// A change that is ready to be applied, and can no longer fail.
struct PreparedChange: Sendable {
    /// The settings that change.
    let names: [String]
    let commit: @Sendable () -> Void
}

extension GatewaySettings {
    /// Returns the settings that differ from other ones. A default that is written out is no difference.
    func changes(from others: GatewaySettings) -> [Setting] {
        Self.all.filter { text(of: $0) != others.text(of: $0) }
    }

    private func text(of setting: Setting) -> String? { given[setting.name]?.value ?? setting.defaultText }

    /// Checks that a reload can apply the settings.
    ///
    /// - Throws: ``InvalidConfiguration`` that names all settings that need a restart.
    func checkReload(from others: GatewaySettings) throws(InvalidConfiguration) {
        var names = changes(from: others).filter { !$0.isReloadable }.map(\.name)
        if routing.contextTexts != others.routing.contextTexts { names.append("routing.contexts") }
        guard !names.isEmpty else { return }
        throw InvalidConfiguration(
            description: "reload not supported for \(names.joined(separator: ", ")): restart the gateway"
        )
    }
}

extension RoutingConfiguration {
    /// The contexts without their rules, independent of their notation.
    fileprivate var contextTexts: [String] {
        contexts.map { (try? PayloadCoder.encode(AnyCodable($0.context.root))) ?? "" }
    }

    /// Returns the contexts whose rules differ from those of another configuration.
    func contexts(withOtherRulesThan other: RoutingConfiguration) -> [HostedContext] {
        func text(_ context: HostedContext) -> [UInt8]? { try? RoutingAdmin.json(context.rules) }
        let known = Dictionary(other.contexts.map { ($0.objectId, text($0)) }, uniquingKeysWith: { $1 })
        return contexts.filter { known[$0.objectId] != text($0) }
    }
}

/// Runs reloads one after the other.
private actor ReloadQueue {
    private var last: Task<Void, Never>?

    func run<Result: Sendable>(_ body: @escaping @Sendable () async -> Result) async -> Result {
        let previous = last
        let task = Task {
            await previous?.value
            return await body()
        }
        last = Task { _ = await task.value }
        return await task.value
    }
}

/// Applies newly read settings while the gateway runs: either all changes or none.
///
/// All steps that can fail are performed before anything changes. A part of the gateway that can apply new settings
/// adds one element to ``prepare(_:from:)``.
final class Reloader: Sendable {
    typealias Read = @Sendable () throws(InvalidConfiguration) -> GatewaySettings

    /// The parts of the gateway to which settings are applied.
    struct Parts: Sendable {
        let access: AccessControl
        let audit: AuditLog
        let accounts: Accounts
        let routing: RoutingAdmin
        /// Nil if the port has no TLS.
        let certificates: CertificateStore?
        let keys: KeyRefresher
        let requestLog: RequestLog
        /// The token that the gateway has generated at its start; nil if it has not generated one.
        let generatedToken: String?
        /// Returns whether the gateway is stopping.
        let isStopping: @Sendable () -> Bool
    }

    private let parts: Parts
    private let read: Read
    private let logger: Logger
    private let inForce: Mutex<GatewaySettings>
    private let queue = ReloadQueue()

    /// - Parameter read: reads the settings from the same sources as at start.
    init(_ settings: GatewaySettings, _ parts: Parts, logger: Logger, read: @escaping Read) {
        inForce = Mutex(settings)
        self.parts = parts
        self.logger = logger
        self.read = read
    }

    /// Reads the settings and applies them. A second call waits for the first, and then reads the settings again.
    ///
    /// - Returns: the names of the settings that have changed.
    /// - Throws: ``InvalidConfiguration``; then nothing has changed.
    func reload() async throws(InvalidConfiguration) -> [String] {
        let result = await queue.run { [self] () -> Result<[String], InvalidConfiguration> in
            do throws(InvalidConfiguration) {
                return .success(try await reloadNow())
            } catch {
                logger.error("the configuration was not reloaded", metadata: ["error": "\(error)"])
                return .failure(error)
            }
        }
        return try result.get()
    }

    private func reloadNow() async throws(InvalidConfiguration) -> [String] {
        guard !parts.isStopping() else { throw InvalidConfiguration(description: "the gateway stops") }
        let settings = try read()
        let current = inForce.withLock(\.self)
        try settings.checkReload(from: current)
        let changes = try await prepare(settings, from: current)
        let contexts = settings.routing.contexts(withOtherRulesThan: current.routing)
        try await check(contexts)
        // From here on, no step can fail.
        for context in contexts { await apply(context) }
        for change in changes { change.commit() }
        inForce.withLock { $0 = settings }
        do {
            try parts.audit.reopen()
        } catch {
            logger.error("the audit log could not be opened again", metadata: ["error": "\(error)"])
        }
        let names = changes.flatMap(\.names) + (contexts.isEmpty ? [] : ["routing"])
        logger.info("configuration reloaded", metadata: ["changed": "\(names.joined(separator: ", "))"])
        return names
    }

    /// Prepares all changes except those of rules. Files and key URLs in the settings are read and checked now;
    /// `commit` applies their content.
    private func prepare(
        _ settings: GatewaySettings,
        from current: GatewaySettings
    ) async throws(InvalidConfiguration) -> [PreparedChange] {
        let changed = Set(settings.changes(from: current).map(\.name))
        return [
            try await access(settings, from: current, changed), try certificates(),
            PreparedChange(names: GatewaySettings.logSettings.map(\.name).filter(changed.contains)) {
                [requestLog = parts.requestLog] in
                LogControl.standard.apply(settings.log.lines)
                requestLog.apply(settings.log.requests)
            },
            PreparedChange(names: changed.filter { $0.hasSuffix("-per-client") }.sorted()) {
                [accounts = parts.accounts] in
                accounts.change(shares: settings.limits)
            },
        ]
    }

    /// Prepares the change of certificates. The TLS files are always loaded again. A certificate that is not yet valid
    /// must not delay other changes: the store loads it when it becomes valid, and has logged this.
    private func certificates() throws(InvalidConfiguration) -> PreparedChange {
        guard let certificates = parts.certificates else { return PreparedChange(names: []) {} }
        do throws(CertificateError) {
            let context = try certificates.prepare()
            return PreparedChange(names: []) { certificates.commit(context) }
        } catch {
            guard error.isEarly else { throw InvalidConfiguration(description: error.description) }
            return PreparedChange(names: []) {}
        }
    }

    /// Prepares the change of access. A generated token stays valid as long as no access is configured. A reload never
    /// opens the gateway: a file may be empty while it is being written.
    private func access(
        _ settings: GatewaySettings,
        from current: GatewaySettings,
        _ changed: Set<String>
    ) async throws(InvalidConfiguration) -> PreparedChange {
        let access = parts.access
        let mode = try AccessMode(settings) { parts.generatedToken ?? RandomSecret.token() }
        if case .open = mode, !access.policy.isOpen {
            throw InvalidConfiguration(description: "access: is missing; only a restart can open the gateway")
        }
        let (verifier, useKeys) = try await parts.keys.prepare(
            mode.jwt,
            replacing: access.policy.verifier,
            isCancelled: parts.isStopping
        )
        let policy = mode.policy(settings, verifier: verifier, replacing: access.policy)
        var names = changed.intersection(["allowed-hosts", "allowed-origins", "token"])
        let former = try AccessMode(current) { parts.generatedToken ?? "" }
        if mode != former {
            names.insert(GatewaySettings.accessName)
        }
        return PreparedChange(names: names.sorted()) {
            useKeys()
            access.replace(policy, browserPolicy: settings.browserPolicy)
        }
    }

    /// Checks that the rules of contexts can be evaluated for the current IO nodes.
    private func check(_ contexts: [HostedContext]) async throws(InvalidConfiguration) {
        for context in contexts {
            do {
                _ = try await parts.routing.evaluate(context.objectId, context: nil, rules: context.rules)
            } catch {
                throw InvalidConfiguration(description: "routing: the rules of \(context.name) can't be used: \(error)")
            }
        }
    }

    private func apply(_ context: HostedContext) async {
        do {
            try await parts.routing.reconfigure(context)
        } catch let error as RoutingAdmin.NotAdopted {
            logger.error(
                "the reloaded rules could not be passed to the gateway that routes the context",
                metadata: ["context": "\(context.objectId)", "error": "\(error.reason)"]
            )
        } catch {
            logger.error(
                "the reloaded rules are in use, but could not be stored in the state directory",
                metadata: ["context": "\(context.objectId)", "error": "\(error)"]
            )
        }
    }
}
