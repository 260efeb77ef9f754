import Coaty

extension CommunicationManager {
    private static let pollInterval = Duration.milliseconds(5)

    /// Waits until what an agent says when it joins has been sent to the broker.
    ///
    /// - Returns: whether it has.
    func hasJoined(within timeout: Duration, by clock: any Clock<Duration>) async -> Bool {
        await withTaskGroup { group in
            group.addTask {
                // The link writes in order, so the join events are out when nothing waits any more.
                while !self.isOnline || self.waiting.publications > 0 {
                    guard (try? await Task.sleep(for: Self.pollInterval)) != nil else { return false }
                }
                return true
            }
            group.addTask {
                try? await clock.sleep(for: timeout)
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }
}
