extension CommunicationManager {
    /// Calls an action once, as soon as fewer publications and fewer bytes than given are queued.
    ///
    /// The action is not called while nothing leaves the queue, for example while the agent is offline.
    ///
    /// - Parameter action: called on any thread; must not block.
    /// - Returns: the registration: it ends if it is cancelled or released.
    func whenRoom(
        below publications: Int,
        bytes: Int,
        _ action: @escaping @Sendable () -> Void
    ) -> Subscription {
        // Temporary: looks at the outbox again and again. A notification of the outbox will replace this.
        let task = Task { [weak self] in
            while let queued = self?.waiting, queued.publications >= publications || queued.bytes >= bytes {
                try await Task.sleep(for: .milliseconds(5))
            }
            action()
        }
        return Subscription { task.cancel() }
    }
}
