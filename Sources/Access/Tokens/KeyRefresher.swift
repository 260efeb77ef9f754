package import Base
import Coordination
import Dispatch
import Foundation
package import Logging
import Synchronization

/// Loads the keys for tokens when they are due, on a thread that may block on the network.
package final class KeyRefresher: Component {
    /// Interval of the checks for keys that a reload has configured.
    private static let idlePause = Duration.seconds(1)

    /// Not a semaphore: libdispatch waits by the wall clock, and a clock that is set back would prolong the wait.
    private let wake: PollSignal
    private let ended = DispatchSemaphore(value: 0)
    private let isStopping = Atomic(false)
    private let hasStarted = Atomic(false)
    private let limits: Limits
    private let current: @Sendable () -> KeyStore?
    private let onRevocation: @Sendable () -> Void
    private let logger: Logger

    /// - Parameters:
    ///   - limits: the limits of tokens and of cached verified tokens.
    ///   - current: returns the keys in use; nil if there are none.
    ///   - onRevocation: called when a key was revoked, because it is no longer among the loaded keys.
    /// - Throws: `SystemCallError` if there is no descriptor.
    package init(
        limits: Limits,
        current: @escaping @Sendable () -> KeyStore?,
        onRevocation: @escaping @Sendable () -> Void,
        logger: Logger
    ) throws {
        wake = try PollSignal()
        self.limits = limits
        self.logger = logger
        self.current = current
        self.onRevocation = onRevocation
    }

    package func start() async {
        hasStarted.store(true, ordering: .relaxed)
        let thread = Thread { [self] in
            while !isStopping.load(ordering: .relaxed) {
                wake.wait(for: turn())
                wake.lower()
            }
            ended.signal()
        }
        thread.name = "keys"
        thread.start()
    }

    package func stop() async {
        guard hasStarted.load(ordering: .relaxed) else { return }
        isStopping.store(true, ordering: .relaxed)
        wake.raise()
        // A running request ends within a second; nothing depends on it.
        await onBlockingThread { [ended] in _ = ended.wait(timeout: .now() + .milliseconds(50)) }
    }

    /// Returns a verifier for the tokens of an identity provider: with the keys of a file, or with those of a URL once
    /// they are fetched.
    ///
    /// - Throws: ``InvalidConfiguration`` if a file can't be used.
    package func verifier(_ configuration: JWTConfiguration) throws(InvalidConfiguration) -> TokenVerifier {
        let keys = try KeyStore(configuration.keys, logger: logger) { [weak self] in self?.check() }
        return TokenVerifier(configuration, keys: keys, limits: limits)
    }

    /// Returns a verifier for the tokens of an identity provider after a reload. A file is read again.
    ///
    /// Keys from a new location are fetched first, within ten seconds: a wrong URL must not lock out all users.
    ///
    /// - Parameters:
    ///   - old: the verifier in use. If nothing else changes, it stays in use, with the tokens that it has verified.
    ///   - isCancelled: called about once a second while keys are fetched.
    /// - Returns: the verifier, and a function that puts the keys in use. Call the function first, and then replace the
    ///   policy by the one with the verifier: that ends the principals of revoked keys.
    /// - Throws: ``InvalidConfiguration`` if a file can't be used, or there are no keys at a new URL.
    package func prepare(
        _ configuration: JWTConfiguration?,
        replacing old: TokenVerifier?,
        isCancelled: @escaping @Sendable () -> Bool
    ) async throws(InvalidConfiguration) -> (verifier: TokenVerifier?, useKeys: @Sendable () -> Void) {
        guard let configuration else { return (nil, {}) }
        guard let old, old.keys.location == configuration.keys else {
            let verifier = try verifier(configuration)
            let result = await onBlockingThread {
                Result { () throws(InvalidConfiguration) in try verifier.keys.loadFirst(isCancelled: isCancelled) }
            }
            try result.get()
            return (verifier, {})
        }
        let use = try old.keys.reload()
        let verifier =
            old.configuration == configuration ? old : TokenVerifier(configuration, keys: old.keys, limits: limits)
        return (verifier, { _ = use() })
    }

    /// Triggers the loading of due keys.
    private func check() { wake.raise() }

    /// - Returns: the time until the next turn.
    private func turn() -> Duration {
        guard let store = current() else { return Self.idlePause }
        let (hasRevoked, next) = store.refresh { [self] in isStopping.load(ordering: .relaxed) }
        if hasRevoked { onRevocation() }
        return min(Self.idlePause, max(.milliseconds(10), next - .now))
    }
}
