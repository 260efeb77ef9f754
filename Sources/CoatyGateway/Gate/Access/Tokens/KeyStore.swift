import Coaty
import Foundation
import Logging
import Synchronization

/// The current keys of an identity provider, from a file or a URL.
///
/// The last good keys stay in use if they can't be loaded again. Its lock is a leaf, and never held while keys are loaded.
final class KeyStore: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// How long keys of a URL are used without `Cache-Control`, and the bounds of what it can state.
    static let defaultAge = Duration.seconds(300)
    static let ages = Duration.seconds(60)...Duration.seconds(3600)
    /// Minimum time between two requests because of tokens that no key fits, from start to start.
    static let minimumPause = Duration.seconds(10)
    /// How often it is checked whether a file has changed.
    static let filePeriod = Duration.seconds(5)
    /// The longest time until a failed request is repeated.
    private static let longestRetry = Duration.seconds(60)
    /// Maximum number of questions that are remembered, and for how long.
    static let maximumQuestions = 1_000
    private static let questionLifetime = Duration.seconds(60)

    /// Whether the next answer of the URL may have the key of a token.
    enum Question: Hashable, Sendable {
        /// No key has this id.
        case id(String)
        /// No key verifies the token: another one may have replaced it under the same id, or without one.
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
        /// When a question was first asked. Keys that were fetched later have answered it.
        ///
        /// If it is forgotten, because of too many others, the token waits once more: a flood can't have a good token refused.
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

    /// Creates a store. That of a file loads it; that of a URL has no keys yet.
    ///
    /// - Throws: ``ConfigurationError`` if the file has no keys, or the file of authorities no certificate.
    init(
        _ location: JWTConfiguration.Keys,
        logger: Logger,
        minimumPause: Duration = KeyStore.minimumPause,
        wake: @escaping @Sendable () -> Void
    ) throws(ConfigurationError) {
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

    /// Fetches the keys of a URL for a store that is not in use yet. Blocks for at most ten seconds. The keys of a file are there.
    ///
    /// - Parameter isCancelled: asked about once a second.
    /// - Throws: ``ConfigurationError`` if there are no keys at the URL, or it can't be reached.
    func loadFirst(isCancelled: @escaping () -> Bool) throws(ConfigurationError) {
        guard case .url(let url, let authorities) = location else { return }
        let now = Instant.now
        do throws(KeySet.Failure) {
            let (keys, lifetime) = try Self.fetch(KeyFetch(url: url, authorities: authorities), isCancelled)
            state.withLock { state in
                (state.keys, state.fetched, state.lastAttempt, state.due) = (keys, now, now, .now + lifetime)
            }
        } catch {
            throw ConfigurationError(description: "access.jwt.keys: \(url): \(error.reason)")
        }
        logger.info("keys for tokens loaded", metadata: ["keys": "\(url)"])
    }

    /// Nil until keys have been loaded.
    var keys: KeySet? { state.withLock(\.keys) }

    /// The keys, and when they were fetched; nil until they have been loaded.
    var loaded: (keys: KeySet, fetched: Instant?)? {
        state.withLock { state in state.keys.map { ($0, state.fetched) } }
    }

    /// When the request began that fetched the keys of a URL; nil before, and for those of a file, which is checked all the time.
    var fetched: Instant? { state.withLock(\.fetched) }

    /// Has the keys of a URL fetched because no key fits a token: once within the minimum pause, for all tokens.
    ///
    /// - Parameter fetched: when the keys were fetched that do not fit.
    /// - Returns: the time after which the token may be presented again; nil if these keys were fetched after it was first presented.
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

    /// Reads a file again, now. Keys of a URL stay.
    ///
    /// - Returns: a function that puts the keys in use, and returns whether a key was revoked.
    /// - Throws: ``ConfigurationError`` if the file has no keys, or the file of authorities no certificate; the former keys stay.
    func reload() throws(ConfigurationError) -> @Sendable () -> Bool {
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

    /// Loads the keys if it is time to. Called by one thread.
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
            // Also if it can't be used: it is read again, and logged again, once it has changed.
            defer { state.stamp = stamp }
            return state.stamp != stamp
        }
        guard hasChanged else { return false }
        do throws(ConfigurationError) {
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
                // Questions asked during the request are not answered yet.
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
            // At 1, 2, 4, … failures in a row.
            if failures & (failures - 1) == 0, !isCancelled() {
                logger.warning(
                    "the keys for tokens could not be loaded",
                    metadata: ["keys": "\(fetch.url)", "error": "\(error.reason)", "failures": "\(failures)"]
                )
            }
            return false
        }
    }

    /// - Returns: the keys, and how long they are used.
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

    private static func load(_ path: String) throws(ConfigurationError) -> (KeySet, FileStamp?) {
        // Before the file is read: a change meanwhile is noticed.
        let stamp = FileStamp(path)
        guard stamp?.size ?? 0 <= KeySet.maximumSize, let data = FileManager.default.contents(atPath: path) else {
            throw ConfigurationError(description: "access.jwt.keys: \(path): cannot be read")
        }
        do throws(KeySet.Failure) {
            return (try KeySet(Array(data)), stamp)
        } catch {
            throw ConfigurationError(description: "access.jwt.keys: \(path): \(error.reason)")
        }
    }
}

extension KeyStore.State {
    /// - Returns: whether a key was revoked.
    fileprivate mutating func replace(_ new: KeySet) -> Bool {
        let (keys, revoked) = new.replacing(keys)
        self.keys = keys
        // Nobody needs to wait for them.
        if let fetched { for id in revoked.compactMap(\.id) { questions.insert(.id(id), fetched, at: .now) } }
        return !revoked.isEmpty
    }
}

/// What shows that a file has changed, also if it was replaced through a symbolic link.
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
