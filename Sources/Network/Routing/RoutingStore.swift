import Base
import Coaty
import Dispatch
import Glibc
package import Logging
import Synchronization

/// Stores changes that were made over REST across restarts: one file per context, in the state directory.
///
/// Stored changes override the configuration, unless the configuration has changed since. This is detected with a
/// fingerprint of the replaced configuration. A context's object and its rules are compared separately.
package final class RoutingStore: Sendable {
    private let directory: String
    private let order: [CoatyUUID]
    /// The version of the gateway, which is written into each file.
    private let writer: String
    private let logger: Logger
    /// The only queue that reads and writes the files, because this blocks.
    private let queue = DispatchQueue(label: "routing store")
    private let state: Mutex<State>

    private struct State {
        var configured: [CoatyUUID: HostedContext]
        /// The next content to write, and the task that writes it. At most one per context: a later one replaces an
        /// earlier one.
        var pending: [CoatyUUID: (context: HostedContext, writing: Task<Void, any Error>)] = [:]
        /// The content of the current files, as far as this process has written them. The same content is not written
        /// twice, so that the previous file stays different.
        var written: [CoatyUUID: String] = [:]
        /// The contexts whose current file is damaged and must not become the previous one.
        var damaged: Set<CoatyUUID> = []
    }

    /// Creates the directory, accessible only to its owner, if it does not exist.
    ///
    /// - Throws: ``RoutingStoreError`` if files can't be written there.
    package init(
        directory: String,
        configuration: RoutingConfiguration,
        writer: String,
        logger: Logger
    ) throws(RoutingStoreError) {
        self.directory = directory
        self.writer = writer
        order = configuration.contexts.map(\.objectId)
        let configured = Dictionary(configuration.contexts.map { ($0.objectId, $0) }, uniquingKeysWith: { $1 })
        state = Mutex(State(configured: configured))
        self.logger = logger
        _ = try Self.make(directory)
        try Self.probe(directory)
    }

    /// Checks that a start could use the directory, also while a gateway runs with it. Leaves no file, and no directory
    /// that did not exist.
    ///
    /// - Throws: ``RoutingStoreError`` with the reason.
    package static func check(_ directory: String, configuration: RoutingConfiguration) throws(RoutingStoreError) {
        let isNew = try make(directory)
        defer { if isNew { rmdir(directory) } }
        try probe(directory)
        try StateLock.check(directory: directory)
        for context in configuration.contexts { try refuseNewer(context.objectId, in: directory) }
    }

    /// Returns whether the directory did not exist.
    private static func make(_ directory: String) throws(RoutingStoreError) -> Bool {
        if mkdir(directory, 0o700) == 0 { return true }
        guard errno == EEXIST else {
            throw RoutingStoreError(directory: directory, reason: "cannot be made: \(errorText(errno))")
        }
        return false
    }

    private static func probe(_ directory: String) throws(RoutingStoreError) {
        let probe = directory + "/.probe"
        let descriptor = open(probe, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw RoutingStoreError(directory: directory, reason: "cannot be written: \(errorText(errno))")
        }
        close(descriptor)
        unlink(probe)
    }

    /// Returns the contexts to route: those of the configuration, with their stored changes. Changes that can't be read
    /// or no longer apply are logged. Files of an older version are written again in the current version.
    ///
    /// - Throws: ``RoutingStoreError`` if a newer gateway has written a file; then no file has changed.
    package func load() async throws -> [HostedContext] {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { [self] in
                continuation.resume(
                    with: Result {
                        for id in order { try Self.refuseNewer(id, in: directory) }
                        let configured = state.withLock(\.configured)
                        return order.compactMap { configured[$0] }.map(load)
                    }
                )
            }
        }
    }

    /// Records that the configuration of a context has changed. Changes that are stored from now on replace the new
    /// configuration.
    func reconfigure(_ context: HostedContext) { state.withLock { $0.configured[context.objectId] = context } }

    /// Stores a configured context and its rules; parts that are as configured are not stored. Of several calls, the
    /// last one wins.
    ///
    /// - Returns: a task that ends when this or later content is on the disk. It throws `SystemCallError`, or
    ///   ``RoutingStoreError`` if the configuration has no such context.
    func save(_ context: HostedContext) -> Task<Void, any Error> {
        let id = context.objectId
        return state.withLock { state in
            let writing =
                state.pending[id]?.writing
                ?? Task {
                    try await withCheckedThrowingContinuation { continuation in
                        queue.async { [self] in continuation.resume(with: Result { try writePending(id) }) }
                    }
                }
            state.pending[id] = (context, writing)
            return writing
        }
    }

    private func file(_ id: CoatyUUID) -> StateFile { Self.file(id, in: directory) }

    private static func file(_ id: CoatyUUID, in directory: String) -> StateFile {
        StateFile(path: "\(directory)/context-\(id).state")
    }

    // MARK: - On the queue

    private func writePending(_ id: CoatyUUID) throws {
        guard let (context, _) = state.withLock({ $0.pending.removeValue(forKey: id) }) else { return }
        try write(context)
    }

    private func write(_ context: HostedContext) throws {
        guard let configured = state.withLock({ $0.configured[context.objectId] }) else {
            throw RoutingStoreError(directory: directory, reason: "does not store the context \(context.objectId)")
        }
        let text = try PayloadCoder.encode(KeptContext(context, replacing: configured))
        let (isDamaged, isWritten) = state.withLock {
            ($0.damaged.contains(context.objectId), $0.written[context.objectId] == text)
        }
        guard !isWritten else { return }
        try file(context.objectId).write(Array(text.utf8), writer: writer, keepingCurrent: !isDamaged)
        state.withLock { state in
            state.damaged.remove(context.objectId)
            state.written[context.objectId] = text
        }
    }

    /// - Throws: ``RoutingStoreError`` if one of a context's files has a newer version. The previous file is checked
    ///   too, because the next write would replace it.
    private static func refuseNewer(_ id: CoatyUUID, in directory: String) throws(RoutingStoreError) {
        let file = file(id, in: directory)
        for path in [file.path, file.previousPath] {
            do throws(StateFile.Flaw) {
                _ = try StateFile.read(path)
            } catch .newer(let version) {
                let flaw = StateFile.Flaw.newer(version: version)
                throw RoutingStoreError(directory: directory, reason: "can't be used: \(path) \(flaw)")
            } catch {
                // The error is reported when the file is loaded.
            }
        }
    }

    private func load(_ configured: HostedContext) -> HostedContext {
        let metadata: Logger.Metadata = ["context": "\(configured.objectId)"]
        guard let (kept, version) = read(configured.objectId) else { return configured }
        let (context, dropped, unusable): (HostedContext, [String], [(part: String, error: any Error)])
        do {
            (context, dropped, unusable) = try kept.applied(to: configured)
        } catch {
            logger.error("the stored state can't be used, so the configuration applies: \(error)", metadata: metadata)
            return configured
        }
        for (part, error) in unusable {
            logger.error(
                "the stored state of \(part) can't be used, so the configuration applies: \(error)",
                metadata: metadata
            )
        }
        let isOutdated = version < StateFile.version && unusable.isEmpty
        if isOutdated {
            logger.info("upgrading the stored state to version \(StateFile.version)", metadata: metadata)
        }
        guard !dropped.isEmpty || isOutdated else { return context }
        for part in dropped {
            logger.warning(
                "the configuration of \(part) has changed: its stored state is discarded",
                metadata: metadata
            )
        }
        do {
            // Otherwise, the dropped changes would return with the earlier configuration.
            try write(context)
        } catch {
            logger.error("the stored state can't be updated: \(error)", metadata: metadata)
        }
        return context
    }

    /// Reads the current file or, if it is damaged, the previous one.
    private func read(_ id: CoatyUUID) -> (kept: KeptContext, version: Int)? {
        let file = file(id)
        var isFlawed = false
        for (path, isCurrent) in [(file.path, true), (file.previousPath, false)] {
            do throws(StateFile.Flaw) {
                let content = try StateFile.read(path)
                let kept = try KeptContext(content.text, of: id)
                if !isCurrent {
                    logger.warning("the previous version of the stored state is used", metadata: ["file": "\(path)"])
                }
                return (kept, content.version)
            } catch .missing {
                // Nothing was ever stored, or the gateway was killed before the new file was in place.
                continue
            } catch {
                isFlawed = true
                if isCurrent { state.withLock { _ = $0.damaged.insert(id) } }
                logger.error("a file of the state directory \(error)", metadata: ["file": "\(path)"])
            }
        }
        if isFlawed {
            logger.error("no stored state can be used, so the configuration applies", metadata: ["context": "\(id)"])
        }
        return nil
    }
}

/// The reason why the state directory can't be used.
package struct RoutingStoreError: Error, CustomStringConvertible {
    let directory: String
    let reason: String

    package var description: String { "state-directory \(directory) \(reason)" }
}

/// The content of a file of the store:
/// `{"objectId", "context"?: {"configured": fingerprint, "value": {…}}, "rules"?: {"configured": fingerprint, "value":
/// […]}, "version"?: {"term", "counter"}}`.
private struct KeptContext: Encodable {
    struct Part: Encodable {
        /// The fingerprint of the replaced configuration.
        let configured: String
        let value: AnyCodable
    }

    let objectId: CoatyUUID
    let context: Part?
    let rules: Part?
    /// Nil outside of a cluster.
    let version: RoutingVersion?

    init(_ current: HostedContext, replacing configured: HostedContext) throws {
        func part(_ current: AnyCodable, _ configured: AnyCodable) throws -> Part? {
            let fingerprint = try Self.fingerprint(configured)
            return try Self.fingerprint(current) == fingerprint ? nil : Part(configured: fingerprint, value: current)
        }
        objectId = current.objectId
        context = try part(AnyCodable(current.context.root), AnyCodable(configured.context.root))
        rules = try part(Self.json(current.rules), Self.json(configured.rules))
        version = current.version == RoutingVersion() ? nil : current.version
    }

    init(_ text: [UInt8], of id: CoatyUUID) throws(StateFile.Flaw) {
        guard let root = (try? JSONDocument(text))?.root, root["objectId"]?.string == id.string else { throw .damaged }
        func part(_ view: JSONView?) throws(StateFile.Flaw) -> Part? {
            guard let view else { return nil }
            guard let configured = view["configured"]?.string, let value = view["value"] else { throw .damaged }
            return Part(configured: configured, value: AnyCodable(value))
        }
        objectId = id
        context = try part(root["context"])
        rules = try part(root["rules"])
        do {
            version = try root["version"].map { try PayloadCoder.decode(RoutingVersion.self, from: $0) }
        } catch {
            throw .damaged
        }
    }

    /// Returns the configuration with the stored parts that still apply, the parts whose configuration has changed
    /// since, and the parts that are no longer valid.
    func applied(
        to configured: HostedContext
    ) throws -> (context: HostedContext, dropped: [String], unusable: [(part: String, error: any Error)]) {
        var (result, dropped, unusable) = (configured, [String](), [(part: String, error: any Error)]())
        func use(
            _ part: Part?,
            _ name: String,
            replacing configured: AnyCodable,
            _ use: (JSONView) throws -> Void
        ) throws {
            guard let part else { return }
            guard try part.configured == Self.fingerprint(configured) else { return dropped.append(name) }
            do {
                try use(JSONDocument(encoding: part.value).root)
            } catch {
                unusable.append((name, error))
            }
        }
        try use(context, "a context", replacing: AnyCodable(configured.context.root)) { view in
            let kept = try HostedContext(context: view, rules: configured.rules)
            guard kept.objectId == configured.objectId, WireName(kept.name) == WireName(configured.name) else {
                throw PayloadError.invalid(pointer: "", reason: "is another context")
            }
            result = kept
        }
        result.version = version ?? RoutingVersion()
        try use(rules, "rules", replacing: Self.json(configured.rules)) {
            result.rules = try IoAssociationRule.rules($0)
        }
        return (result, dropped, unusable)
    }

    private static func json(_ rules: [IoAssociationRule]) throws -> AnyCodable {
        AnyCodable(try JSONDocument(encoding: rules).root)
    }

    /// Returns the fingerprint of the value, independent of its notation.
    private static func fingerprint(_ json: AnyCodable) throws -> String {
        try Fingerprint.of(PayloadCoder.encodeBytes(json))
    }
}
