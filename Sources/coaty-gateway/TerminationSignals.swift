import Dispatch
import Foundation

/// Handles SIGTERM and SIGINT: the first signal requests an orderly stop, a second one ends the process immediately.
/// Safe to share: it is not changed after `init`.
final class TerminationSignals: @unchecked Sendable {
    private let signals: AsyncStream<Void>
    /// The signal sources. A released source delivers no signals.
    private let sources: [any DispatchSourceSignal]
    private let receive: @Sendable () -> Void

    /// - Parameter onFirst: called at the first signal, on a queue that no task uses.
    init(onFirst: @escaping @Sendable () -> Void) {
        // A disconnected peer is detected by the result of a write.
        signal(SIGPIPE, SIG_IGN)
        let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingOldest(1))
        self.signals = signals
        let seen = DispatchQueue(label: "signals")
        // Safe: used only on the serial queue.
        nonisolated(unsafe) var (count, hasBegun) = (0, false)
        let begin: @Sendable () -> Void = {
            guard !hasBegun else { return }
            hasBegun = true
            onFirst()
            continuation.yield()
        }
        sources = [SIGTERM, SIGINT].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: seen)
            source.setEventHandler {
                count += 1
                if count > 1 { _exit(130) }
                begin()
            }
            source.resume()
            return source
        }
        receive = { seen.async(execute: begin) }
    }

    /// Starts an orderly stop like a first signal; does nothing if there was one.
    func begin() { receive() }

    /// Waits for the first signal.
    func wait() async {
        for await _ in signals { return }
    }
}
