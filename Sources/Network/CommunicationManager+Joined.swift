import Coaty

extension CommunicationManager {
    private static let pollInterval = Duration.milliseconds(5)

    /// Waits until the join events of an agent are written to the connection.
    ///
    /// - Returns: whether they were written in time.
    func hasJoined(within timeout: Duration, by clock: any Clock<Duration>) async -> Bool {
        await withTaskGroup { group in
            group.addTask {
                while !self.hasWrittenEverything {
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
