package import Coaty

extension CommunicationStatistics {
    /// The time for which the oldest publication has been queued; nil if there is none.
    package var publishLag: Duration? { oldestQueued.map { .now - $0 } }
}
