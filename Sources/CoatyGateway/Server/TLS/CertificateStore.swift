import Coordination
import Dispatch
import Foundation
import Glibc
import Logging
import Synchronization

/// The certificate and the key of the port, loaded again on request and when their files change.
///
/// Running connections keep the certificate that they began with. Files that can't be used leave the loaded ones in force.
final class CertificateStore: Component {
    /// How often the files are looked at. Not by inotify: a mounted secret is replaced by a change of a symbolic link above the file.
    static let checkInterval = Duration.seconds(5)

    /// Files that were loaded and are not yet in force.
    struct Prepared: Sendable {
        fileprivate let context: TLSContext
        fileprivate let versions: [FileVersion]
    }

    /// What changes when a file is written or replaced.
    fileprivate struct FileVersion: Equatable, Sendable {
        var device: dev_t = 0
        var number: ino_t = 0
        var size: Int = 0
        var seconds = 0
        var nanoseconds = 0

        /// All zero if there is no such file.
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
        /// The versions that could not be loaded, so that they are logged once.
        var refused: [FileVersion]?
        var timer: (any DispatchSourceTimer)?
    }

    private let files: TLSFiles
    private let interval: Duration
    private let logger: Logger
    private let state: Mutex<State>

    /// - Throws: ``CertificateError`` if the files can't be used.
    init(_ files: TLSFiles, interval: Duration = CertificateStore.checkInterval, logger: Logger)
        throws(CertificateError)
    {
        self.files = files
        self.interval = interval
        self.logger = logger
        state = Mutex(State(loaded: try Self.load(files)))
    }

    /// What new connections use.
    var context: TLSContext { state.withLock { $0.loaded.context } }

    /// Loads the files, and changes nothing.
    func prepare() throws(CertificateError) -> Prepared { try Self.load(files) }

    /// Puts loaded files in force for new connections.
    func commit(_ prepared: Prepared) {
        state.withLock { state in
            state.loaded = prepared
            state.refused = nil
        }
        let expiry = Date(timeIntervalSince1970: TimeInterval(prepared.context.expiry))
        logger.info(
            "certificate loaded",
            metadata: ["file": "\(files.certificate)", "valid until": "\(expiry.ISO8601Format())"]
        )
    }

    /// Loads the files and puts them in force for new connections.
    ///
    /// - Throws: ``CertificateError`` if the files can't be used; nothing has changed then.
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

    /// Reloads the files if they have changed. Of a pair that is being written, one file may not fit the other: the next check finds
    /// it complete.
    private func check() {
        let versions = files.all.map(FileVersion.init)
        guard state.withLock({ $0.loaded.versions != versions && $0.refused != versions }) else { return }
        do throws(CertificateError) {
            try reload()
        } catch {
            state.withLock { $0.refused = versions }
            logger.error(
                "changed certificate files can't be used; the loaded certificate stays in force",
                metadata: ["error": "\(error)"]
            )
        }
    }

    private static func load(_ files: TLSFiles) throws(CertificateError) -> Prepared {
        // Before the files are read: a later change is found by the next check.
        let versions = files.all.map(FileVersion.init)
        return Prepared(context: try TLSContext(files), versions: versions)
    }
}
