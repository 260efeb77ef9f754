import Synchronization

/// The metrics of the gateway. Their sources are called whenever the metrics are read.
package final class Metrics: Sendable {
    package typealias Source = @Sendable (inout MetricsText) -> Void

    private let sources = Mutex<[Source]>([])

    package init() {}

    /// Adds a source, which is called from any thread.
    package func add(_ source: @escaping Source) { sources.withLock { $0.append(source) } }

    /// All metrics now, in the order in which their sources were added.
    package var text: MetricsText {
        let sources = sources.withLock(\.self)
        return sources.reduce(into: MetricsText()) { text, source in source(&text) }
    }
}
