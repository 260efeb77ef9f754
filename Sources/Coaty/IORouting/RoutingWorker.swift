/// Changes the routing table of a router outside the ``ControllerActor``.
actor RoutingWorker {
    /// Changes a table and returns the changes.
    typealias Change = @Sendable (inout IoRoutingTable, isolated RoutingWorker) async throws -> IoAssociationChanges

    nonisolated let executor = RoutingExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Makes a change to a copy of a table.
    ///
    /// The change yields between batches of pairs, so that several changes can run concurrently.
    ///
    /// - Throws: the errors of the change; `CancellationError` if the task is cancelled before all pairs are decided.
    func change(_ table: IoRoutingTable, _ change: Change) async throws -> (
        table: IoRoutingTable, changes: IoAssociationChanges
    ) {
        var table = table
        let changes = try await change(&table, self)
        return (table, changes)
    }

    /// Returns the associations of a node, except those with some other nodes. Yields at intervals.
    func associations(
        of node: CoatyUUID,
        in table: IoRoutingTable,
        except others: Set<CoatyUUID>
    ) async -> [IoAssociation] {
        var associations: [IoAssociation] = []
        for point in table.points(of: node) {
            associations += table.associations(of: point, except: others)
            await Task.yield()
        }
        return associations
    }
}
