import Synchronization

/// What is known about the gateway in numbers. Those who have the numbers are asked when somebody reads them.
final class Metrics: Sendable {
    typealias Source = @Sendable (inout MetricsText) -> Void

    private let sources = Mutex<[Source]>([])

    /// Adds a source, which is called from any thread.
    func add(_ source: @escaping Source) { sources.withLock { $0.append(source) } }

    /// All metrics now, in the order in which their sources were added.
    var text: MetricsText {
        let sources = sources.withLock(\.self)
        return sources.reduce(into: MetricsText()) { text, source in source(&text) }
    }
}
