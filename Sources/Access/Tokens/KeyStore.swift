package import Base
import Coaty
import Foundation
package import Logging
import Synchronization

/// The current keys of an identity provider, from a file or a URL.
///
/// If new keys can't be loaded, the last valid keys stay in use. The lock is a leaf, and is never held while keys are
/// loaded.
package final class KeyStore: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// The time for which keys of a URL are used without `Cache-Control`, and the bounds of its value.
    static let defaultAge = Duration.seconds(300)
    static let ages = Duration.seconds(60)...Duration.seconds(3600)
    /// Minimum time between the starts of two requests that are caused by tokens that match no key.
    static let minimumPause = Duration.seconds(10)
    /// Interval of the checks whether a file has changed.
    static let filePeriod = Duration.seconds(5)
    /// Maximum time until a failed request is repeated.
    private static let longestRetry = Duration.seconds(60)
    /// Maximum number of stored questions, and the time for which they are stored.
    static let maximumQuestions = 1_000
    private static let questionLifetime = Duration.seconds(60)

    /// A question whether the next response of the URL contains the key of a token.
    enum Question: Hashable, Sendable {
        /// No key has this id.
        case id(String)
        /// No key verifies the token: a new key may have the same id as the old one, or no id.
        case token(TokenDigest)
    }

    fileprivate struct State {
        var keys: KeySet?
        /// When the keys are loaded next.
        var due: Instant
        var lastAttempt: Instant?
        var failures = 0
        /// When the last successful request for the keys of a URL began; nil before, and for a file.
        var fetched: Instant?
        /// When each question was first asked. Keys that were fetched later have answered it.
        ///
        /// If a question is removed because there are too many others, the token waits once more: a flood of bad tokens
        /// can't cause the refusal of a valid one.
        var questions = ExpiringTable<Question, Instant>(
            lifetime: KeyStore.questionLifetime,
            capacity: KeyStore.maximumQuestions
        )
        /// When an unanswered question was last asked.
        var asked: Instant?
        var stamp: FileStamp?
    }

    let location: JWTConfiguration.Keys
    /// Wakes the thread that calls ``refresh(at:isCancelled:)``.
    private let wake: @Sendable () -> Void
    private let logger: Logger
    private let minimumPause: Duration
    private let state: Mutex<State>

    /// Creates a store. With a file, the keys are loaded immediately; with a URL, there are no keys yet.
    ///
    /// - Throws: ``InvalidConfiguration`` if the file contains no keys, or the file of authorities contains no
    ///   certificate.
    package init(
        _ location: JWTConfiguration.Keys,
        logger: Logger,
        minimumPause: Duration = KeyStore.minimumPause,
        wake: @escaping @Sendable () -> Void
    ) throws(InvalidConfiguration) {
        self.location = location
        self.logger = logger
        self.wake = wake
        self.minimumPause = minimumPause
        state = Mutex(State(due: .now))
        switch location {
        case .url(_, let authorities): if let authorities { try KeyAuthorities.check(authorities) }
        case .file(let path):
            let (keys, stamp) = try Self.load(path)
            state.withLock { ($0.keys, $0.stamp, $0.due) = (keys, stamp, .now + Self.filePeriod) }
        }
    }

    /// Fetches the keys of a URL for a store that is not in use yet. Blocks for at most ten seconds. Does nothing for a
    /// file, whose keys are already loaded.
    ///
    /// - Parameter isCancelled: called about once a second.
    /// - Throws: ``InvalidConfiguration`` if there are no keys at the URL, or it can't be reached.
    func loadFirst(isCancelled: @escaping () -> Bool) throws(InvalidConfiguration) {
        guard case .url(let url, let authorities) = location else { return }
        let now = Instant.now
        do throws(KeySet.Failure) {
            let (keys, lifetime) = try Self.fetch(KeyFetch(url: url, authorities: authorities), isCancelled)
            state.withLock { state in
                (state.keys, state.fetched, state.lastAttempt, state.due) = (keys, now, now, .now + lifetime)
            }
        } catch {
            throw InvalidConfiguration(description: "access.jwt.keys: \(url): \(error.reason)")
        }
        logger.info("keys for tokens loaded", metadata: ["keys": "\(url)"])
    }

    /// Nil until keys have been loaded.
    package var keys: KeySet? { state.withLock(\.keys) }

    /// The keys, and when they were fetched; nil until they have been loaded.
    var loaded: (keys: KeySet, fetched: Instant?)? {
        state.withLock { state in state.keys.map { ($0, state.fetched) } }
    }

    /// When the last successful request for the keys of a URL began; nil before, and for a file, which is checked
    /// continuously.
    package var fetched: Instant? { state.withLock(\.fetched) }

    /// Requests the keys of a URL again because a token matches no key: at most once within the minimum pause, for all
    /// tokens together.
    ///
    /// - Parameter fetched: when the keys were fetched that do not match.
    /// - Returns: the time after which the token may be presented again; nil if these keys were fetched after it was
    ///   first presented.
    func ask(_ question: Question, fetched: Instant?, at now: Instant = .now) -> Duration? {
        guard case .url = location else { return nil }
        let (pause, isEarlier) = state.withLock { state -> (Duration?, Bool) in
            if let first = state.questions.entry(question, at: now)?.value {
                if let fetched, first <= fetched { return (nil, false) }
            } else {
                state.questions.insert(question, now, at: now)
            }
            state.asked = now
            let earliest = max(now, state.lastAttempt.map { $0 + minimumPause } ?? now)
            defer { state.due = min(state.due, earliest) }
            return (earliest - now, earliest < state.due)
        }
        if isEarlier { wake() }
        return pause
    }

    /// Reads a file again immediately. Keys of a URL are kept.
    ///
    /// - Returns: a function that puts the keys in use, and returns whether a key was revoked.
    /// - Throws: ``InvalidConfiguration`` if the file contains no keys, or the file of authorities contains no
    ///   certificate; the old keys are kept.
    func reload() throws(InvalidConfiguration) -> @Sendable () -> Bool {
        let path: String
        switch location {
        case .url(_, let authorities):
            if let authorities { try KeyAuthorities.check(authorities) }
            return { false }
        case .file(let file): path = file
        }
        let (keys, stamp) = try Self.load(path)
        return { [self] in
            state.withLock { state in
                state.stamp = stamp
                return state.replace(keys)
            }
        }
    }

    /// Loads the keys if they are due. Called by one thread.
    ///
    /// - Returns: whether a key was revoked, and when to call this again.
    func refresh(at now: Instant = .now, isCancelled: @escaping () -> Bool) -> (hasRevoked: Bool, next: Instant) {
        let due = state.withLock(\.due)
        guard due <= now else { return (false, due) }
        let hasRevoked =
            switch location {
            case .file(let path): refreshFile(path, at: now)
            case .url(let url, let authorities):
                refreshURL(KeyFetch(url: url, authorities: authorities), at: now, isCancelled)
            }
        return (hasRevoked, state.withLock(\.due))
    }

    private func refreshFile(_ path: String, at now: Instant) -> Bool {
        let stamp = FileStamp(path)
        let hasChanged = state.withLock { state in
            state.due = now + Self.filePeriod
            // Even if the file can't be used: it is read and logged again only after it has changed.
            defer { state.stamp = stamp }
            return state.stamp != stamp
        }
        guard hasChanged else { return false }
        do throws(InvalidConfiguration) {
            let hasRevoked = try reload()()
            logger.info("keys for tokens loaded", metadata: ["keys": "\(path)"])
            return hasRevoked
        } catch {
            logger.warning(
                "the keys for tokens could not be loaded; the previous keys stay in use",
                metadata: ["error": "\(error)"]
            )
            return false
        }
    }

    private func refreshURL(_ fetch: KeyFetch, at now: Instant, _ isCancelled: @escaping () -> Bool) -> Bool {
        state.withLock { $0.lastAttempt = now }
        do throws(KeySet.Failure) {
            let (keys, lifetime) = try Self.fetch(fetch, isCancelled)
            let (hasRevoked, isFirst) = state.withLock { state in
                let isFirst = state.keys == nil
                state.failures = 0
                state.fetched = now
                let hasRevoked = state.replace(keys)
                // Questions that were asked during the request are not answered yet.
                let isAnswered = state.asked.map { $0 <= now } ?? true
                state.due = isAnswered ? .now + lifetime : now + minimumPause
                return (hasRevoked, isFirst)
            }
            if isFirst { logger.info("keys for tokens loaded", metadata: ["keys": "\(fetch.url)"]) }
            return hasRevoked
        } catch {
            let failures = state.withLock { state in
                state.failures += 1
                let retry = min(Self.longestRetry, .seconds(1 << min(state.failures - 1, 6)))
                state.due = .now + (state.keys == nil ? retry : max(retry, minimumPause))
                return state.failures
            }
            // At 1, 2, 4, … consecutive failures.
            if failures & (failures - 1) == 0, !isCancelled() {
                logger.warning(
                    "the keys for tokens could not be loaded",
                    metadata: ["keys": "\(fetch.url)", "error": "\(error.reason)", "failures": "\(failures)"]
                )
            }
            return false
        }
    }

    /// - Returns: the keys, and how long to use them.
    private static func fetch(
        _ fetch: KeyFetch,
        _ isCancelled: @escaping () -> Bool
    ) throws(KeySet.Failure) -> (keys: KeySet, lifetime: Duration) {
        let (body, age): ([UInt8], Duration?)
        do throws(KeyFetch.Failure) {
            (body, age) = try fetch.run(isCancelled: isCancelled)
        } catch {
            throw KeySet.Failure(reason: error.reason)
        }
        return (
            try KeySet(body, isPublic: true),
            min(max(age ?? defaultAge, ages.lowerBound), ages.upperBound)
        )
    }

    private static func load(_ path: String) throws(InvalidConfiguration) -> (KeySet, FileStamp?) {
        // Before the file is read, so that a change meanwhile is noticed.
        let stamp = FileStamp(path)
        guard stamp?.size ?? 0 <= KeySet.maximumSize, let data = FileManager.default.contents(atPath: path) else {
            throw InvalidConfiguration(description: "access.jwt.keys: \(path): cannot be read")
        }
        do throws(KeySet.Failure) {
            return (try KeySet(Array(data)), stamp)
        } catch {
            throw InvalidConfiguration(description: "access.jwt.keys: \(path): \(error.reason)")
        }
    }
}

extension KeyStore.State {
    /// - Returns: whether a key was revoked.
    fileprivate mutating func replace(_ new: KeySet) -> Bool {
        let (keys, revoked) = new.replacing(keys)
        self.keys = keys
        // Tokens need not wait for revoked keys.
        if let fetched { for id in revoked.compactMap(\.id) { questions.insert(.id(id), fetched, at: .now) } }
        return !revoked.isEmpty
    }
}

/// A stamp that changes with a file, even if the file is replaced through a symbolic link.
private struct FileStamp: Equatable, Sendable {
    let size: Int
    private let inode: UInt64
    private let seconds: Int
    private let nanoseconds: Int

    init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        size = Int(status.st_size)
        inode = UInt64(status.st_ino)
        seconds = status.st_mtim.tv_sec
        nanoseconds = status.st_mtim.tv_nsec
    }
}
