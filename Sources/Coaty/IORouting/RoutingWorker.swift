/// Changes the routing table of one router, away from the ``ControllerActor``.
actor RoutingWorker {
    /// Makes a change to a table, and returns what it changed.
    typealias Change = @Sendable (inout IoRoutingTable, isolated RoutingWorker) async throws -> IoAssociationChanges

    nonisolated let executor = RoutingExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Makes a change to a copy of a table.
    ///
    /// The change yields between batches of pairs, so that several can be under way.
    ///
    /// - Throws: what the change throws; `CancellationError` if the task is cancelled before all pairs are decided.
    func change(_ table: IoRoutingTable, _ change: Change) async throws -> (
        table: IoRoutingTable, changes: IoAssociationChanges
    ) {
        var table = table
        let changes = try await change(&table, self)
        return (table, changes)
    }
}
