import Coordination
import Dispatch
import Foundation
import Glibc
package import Logging
import Synchronization

/// The certificate and the key of the port, loaded again on request and when their files change.
///
/// Existing connections keep their certificate. If files can't be used, the loaded ones stay in force.
package final class CertificateStore: Component {
    /// Interval of the checks of the files. Inotify is not used: a mounted secret is replaced by changing a symbolic
    /// link above the file.
    static let checkInterval = Duration.seconds(5)

    /// The time for which session tickets are encrypted with the same keys. An attacker who has the keys can decrypt
    /// recorded sessions of TLS 1.2.
    static let ticketKeyLifetime = Duration.seconds(86_400)

    /// Loaded files that are not yet in force.
    package struct Prepared: Sendable {
        fileprivate var context: TLSContext
        fileprivate let versions: [FileVersion]
        /// When the context was created, together with its keys for session tickets.
        fileprivate var made = ContinuousClock.now
    }

    /// The properties that change when a file is written or replaced.
    fileprivate struct FileVersion: Equatable, Sendable {
        var device: dev_t = 0
        var number: ino_t = 0
        var size: Int = 0
        var seconds = 0
        var nanoseconds = 0

        /// Reads the version of a file; all zero if there is no such file.
        init(_ path: String) {
            var information = stat()
            guard stat(path, &information) == 0 else { return }
            device = information.st_dev
            number = information.st_ino
            size = Int(information.st_size)
            seconds = information.st_mtim.tv_sec
            nanoseconds = information.st_mtim.tv_nsec
        }
    }

    private struct State {
        var loaded: Prepared
        /// The versions that could not be loaded, stored so that they are logged only once.
        var refused: [FileVersion]?
        var timer: (any DispatchSourceTimer)?
    }

    private let files: TLSFiles
    private let interval: Duration
    private let ticketKeyLifetime: Duration
    private let logger: Logger
    private let state: Mutex<State>

    /// - Throws: ``CertificateError`` if the files can't be used.
    package init(
        _ files: TLSFiles,
        interval: Duration = CertificateStore.checkInterval,
        ticketKeyLifetime: Duration = CertificateStore.ticketKeyLifetime,
        logger: Logger
    ) throws(CertificateError) {
        self.files = files
        self.interval = interval
        self.ticketKeyLifetime = ticketKeyLifetime
        self.logger = logger
        let loaded = try Self.load(files)
        state = Mutex(State(loaded: loaded))
        warnIfInvalid(loaded.context)
    }

    /// The context for new connections.
    package var context: TLSContext { state.withLock { $0.loaded.context } }

    /// Loads the files without putting them in force.
    ///
    /// - Throws: ``CertificateError`` if the files can't be used. A certificate that is not valid now can't replace a
    ///   valid one.
    package func prepare() throws(CertificateError) -> Prepared {
        let prepared = try Self.load(files)
        if !prepared.context.isValid, context.isValid {
            let (beginning, expiry) = Self.validity(prepared.context)
            throw CertificateError(
                file: files.certificate,
                reason: "is only valid from \(beginning) to \(expiry)",
                isEarly: prepared.context.beginning > Int64(Date().timeIntervalSince1970)
            )
        }
        return prepared
    }

    /// Puts loaded files in force for new connections.
    package func commit(_ prepared: Prepared) {
        state.withLock { state in
            state.loaded = prepared
            state.refused = nil
        }
        let expiry = Self.validity(prepared.context).expiry
        logger.info("certificate loaded", metadata: ["file": "\(files.certificate)", "valid until": "\(expiry)"])
        warnIfInvalid(prepared.context)
    }

    private func warnIfInvalid(_ context: TLSContext) {
        guard !context.isValid else { return }
        let (beginning, expiry) = Self.validity(context)
        logger.warning(
            "the certificate is not valid at this time",
            metadata: [
                "file": "\(files.certificate)", "valid from": "\(beginning)", "valid until": "\(expiry)",
            ]
        )
    }

    private static func validity(_ context: TLSContext) -> (beginning: String, expiry: String) {
        func text(_ seconds: Int64) -> String { Date(timeIntervalSince1970: TimeInterval(seconds)).ISO8601Format() }
        return (text(context.beginning), text(context.expiry))
    }

    /// Loads the files and puts them in force for new connections.
    ///
    /// - Throws: ``CertificateError`` if the files can't be used; then nothing has changed.
    func reload() throws(CertificateError) { commit(try prepare()) }

    func start() async {
        let nanoseconds = Int(interval / .nanoseconds(1))
        state.withLock { state in
            let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "certificates"))
            timer.schedule(deadline: .now() + .nanoseconds(nanoseconds), repeating: .nanoseconds(nanoseconds))
            timer.setEventHandler { [weak self] in self?.check() }
            timer.activate()
            state.timer = timer
        }
    }

    func stop() async {
        state.withLock { state in
            state.timer?.cancel()
            state.timer = nil
        }
    }

    /// Reloads the files if they differ from those in force. Files that could not be used are tried each time:
    /// permissions may have been corrected since, or a certificate may have become valid.
    private func check() {
        renewTicketKeys()
        let versions = files.all.map(FileVersion.init)
        guard state.withLock({ $0.loaded.versions != versions }) else { return }
        do throws(CertificateError) {
            try reload()
        } catch {
            let isKnown = state.withLock { state in
                defer { state.refused = versions }
                return state.refused == versions
            }
            guard !isKnown else { return }
            logger.error(
                "changed certificate files can't be used; the loaded certificate stays in use",
                metadata: ["error": "\(error)"]
            )
        }
    }

    private func renewTicketKeys() {
        state.withLock { state in
            guard .now - state.loaded.made >= ticketKeyLifetime, let context = state.loaded.context.renewed() else {
                return
            }
            state.loaded.context = context
            state.loaded.made = .now
        }
    }

    private static func load(_ files: TLSFiles) throws(CertificateError) -> Prepared {
        // Before the files are read, so that the next check finds a later change.
        let versions = files.all.map(FileVersion.init)
        return Prepared(context: try TLSContext(files), versions: versions)
    }
}
