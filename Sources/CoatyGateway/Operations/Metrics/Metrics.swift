import Synchronization

/// The metrics of the gateway. Their sources are called whenever the metrics are read.
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
