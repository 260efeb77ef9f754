/// The decisions of a routing table: batch by batch, with a yield after each.
extension IoRoutingTable {
    /// Adds or updates a node, and decides on its pairs.
    ///
    /// - Throws: ``Refusal``; `CancellationError` if the task is cancelled. The table must not be used after that.
    mutating func take(
        _ node: IoNode,
        json: JSONView,
        _ verdicts: @escaping Verdicts,
        isolation: isolated (any Actor)? = #isolation
    ) async throws -> IoAssociationChanges {
        let changes = try await decide(exchange(node, json: json), verdicts)
        if excess?.isOfRun ?? false { throw Refusal.tooMuchWork }
        return changes
    }

    /// Removes a node, and dissolves its associations.
    ///
    /// - Throws: `CancellationError` if the task is cancelled. The table must not be used after that.
    mutating func remove(
        _ id: CoatyUUID,
        _ verdicts: @escaping Verdicts,
        isolation: isolated (any Actor)? = #isolation
    ) async throws -> IoAssociationChanges {
        guard let changed = removeNode(id) else { return IoAssociationChanges() }
        return try await decide(changed, verdicts)
    }

    /// Decides again on all pairs, or on those of some kinds.
    ///
    /// - Throws: `CancellationError` if the task is cancelled. The table must not be used after that.
    mutating func evaluate(
        where isTouched: (PointKind) -> Bool = { _ in true },
        _ verdicts: @escaping Verdicts,
        isolation: isolated (any Actor)? = #isolation
    ) async throws -> IoAssociationChanges {
        isFull = false
        // Called once for each kind, rather than for each source.
        let touched = Set(compatible.keys.filter(isTouched))
        var run = RoutingRun(RoutingWork(steps: stepsPerRun, pairCount: pairCount))
        if !touched.isEmpty {
            for source in Array(heldSources) where touched.contains(source.kind) {
                try await decide(source, verdicts, &run)
            }
        }
        return try await finish(&run)
    }

    /// Returns the changes that ``evaluate(where:_:isolation:)`` would make.
    ///
    /// - Throws: ``RoutingExcess``; `CancellationError` if the task is cancelled.
    func preview(
        _ verdicts: @escaping Verdicts,
        isolation: isolated (any Actor)? = #isolation
    ) async throws -> IoAssociationChanges {
        var copy = self
        let changes = try await copy.evaluate(verdicts)
        if let excess = copy.excess { throw excess }
        return changes
    }

    private mutating func decide(
        _ changed: ChangedPoints,
        _ verdicts: @escaping Verdicts,
        isolation: isolated (any Actor)? = #isolation
    ) async throws -> IoAssociationChanges {
        var run = RoutingRun(RoutingWork(steps: stepsPerRun, pairCount: pairCount))
        for (before, after) in changed.actors {
            guard let before, after?.kind != before.kind else { continue }
            for source in sourcesByPlace(before.kind) {
                let isFull = run.add(.init(source: source, actor: before, verdict: .constant(false)))
                if isFull { try await decideBatch(&run) }
            }
        }
        for (before, after) in changed.sources {
            if let before, after?.kind != before.kind || !before.isOfSameNode(as: after) {
                try await decidePending(&run)
                dissolve(before, &run)
            }
            if let after { try await decide(after, verdicts, &run) }
        }
        for (before, after) in changed.actors {
            guard let after else { continue }
            let verdict = verdicts(after.kind)
            let hasMoved = before.map { !$0.isOfSameNode(as: after) } ?? false
            for source in sourcesByPlace(after.kind) {
                let isFull = run.add(.init(source: source, actor: after, verdict: verdict, hasMoved: hasMoved))
                if isFull { try await decideBatch(&run) }
            }
        }
        for kind in Set(changed.sources.compactMap(\.before?.kind) + changed.actors.compactMap(\.before?.kind)) {
            if let left = compatible[kind], left.sources.isEmpty, left.actors.isEmpty { compatible[kind] = nil }
        }
        return try await finish(&run)
    }

    private func sourcesByPlace(_ kind: PointKind) -> [RoutedPoint<IoSource>] {
        (compatible[kind]?.sources.values).map { $0.sorted { $0.place < $1.place } } ?? []
    }

    private mutating func decide(
        _ source: RoutedPoint<IoSource>,
        _ verdicts: Verdicts,
        _ run: inout RoutingRun,
        isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let kind: RoutingRun.Kind
        if let known = run.kinds[source.kind] {
            kind = known
        } else {
            let actors = (compatible[source.kind]?.actors.values).map(Array.init) ?? []
            kind = RoutingRun.Kind(verdict: verdicts(source.kind), actors: actors)
            run.kinds[source.kind] = kind
        }
        for actor in kind.actors {
            let isFull = run.add(.init(source: source, actor: actor, verdict: kind.verdict))
            if isFull { try await decideBatch(&run) }
        }
    }

    /// Decides on a full batch, then yields to other work.
    private mutating func decideBatch(
        _ run: inout RoutingRun,
        isolation: isolated (any Actor)? = #isolation
    ) async throws {
        try await decidePending(&run)
        await Task.yield()
    }

    private mutating func decidePending(
        _ run: inout RoutingRun,
        isolation: isolated (any Actor)? = #isolation
    ) async throws {
        try Task.checkCancellation()
        let pairs = run.takePending()
        let decisions = try await UndecidedPair.decide(pairs, &run.work)
        for (pair, isAssociated) in zip(pairs, decisions) { set(pair, isAssociated, &run) }
    }

    /// Stores whether a pair is associated, and records the change.
    private mutating func set(_ pair: UndecidedPair, _ isAssociated: Bool, _ run: inout RoutingRun) {
        let (source, actor) = (pair.source, pair.actor)
        let old = routed[source.id]?.actors[actor.id]
        guard isAssociated else {
            guard let old else { return }
            edit(source.id, &run) { $0.remove(actor.id, actor.place, rate: old) }
            routed[source.id]?.actors[actor.id] = nil
            associationCount -= 1
            return
        }
        let rate = [source.updateRate, actor.updateRate].compactMap(\.self).max()
        if let old {
            guard old != rate || pair.hasMoved else { return }
            edit(source.id, &run) { edit in
                edit.exchange(old, for: rate)
                if pair.hasMoved { edit.publishAgain(actor.id, actor.place) }
            }
        } else {
            guard associationCount < IoRouter.maximumAssociations else {
                isFull = true
                return
            }
            edit(source.id, &run) { $0.add(actor.id, actor.place, rate: rate) }
            associationCount += 1
        }
        if routed[source.id] == nil { routed[source.id] = Routed(route: route(of: source)) }
        routed[source.id]?.actors.updateValue(rate, forKey: actor.id)
    }

    /// Dissolves all associations of a source.
    private mutating func dissolve(_ source: RoutedPoint<IoSource>, _ run: inout RoutingRun) {
        guard let old = routed[source.id] else { return }
        let places = old.actors.keys.map { ($0, actor($0)?.place) }
        edit(source.id, &run) { edit in
            edit.hasMoved = true
            for (actorId, place) in places {
                edit.remove(actorId, place ?? Place(arrival: 0, index: 0), rate: old.updateRate)
            }
        }
        associationCount -= old.actors.count
        routed[source.id] = nil
    }

    private func edit(_ sourceId: CoatyUUID, _ run: inout RoutingRun, _ change: (inout RoutingRun.Edit) -> Void) {
        let old = routed[sourceId]
        change(&run.edits[sourceId, default: RoutingRun.Edit(route: old?.route, updateRate: old?.updateRate)])
    }

    /// Decides on the remaining pairs, and returns all changes.
    private mutating func finish(
        _ run: inout RoutingRun,
        isolation: isolated (any Actor)? = #isolation
    ) async throws -> IoAssociationChanges {
        try await decidePending(&run)
        excess = run.work.excess
        var changes = IoAssociationChanges()
        var yieldAt = UndecidedPair.batchSize
        for (sourceId, edit) in run.edits {
            for actorId in edit.removed.inOrder {
                changes.removed.append(IoAssociation(ioSourceId: sourceId, ioActorId: actorId))
            }
            guard let new = routed[sourceId] else { continue }
            let updateRate =
                edit.hasLostLargest
                ? new.actors.values.compactMap(\.self).max() : [edit.updateRate, edit.largest].compactMap(\.self).max()
            routed[sourceId]?.updateRate = updateRate
            func association(_ actorId: CoatyUUID) -> IoAssociation {
                IoAssociation(ioSourceId: sourceId, ioActorId: actorId, updateRate: updateRate)
            }
            changes.added += edit.added.inOrder.map(association)
            // A kept association is published again if its rate or route has changed, or an agent does not know it.
            if updateRate != edit.updateRate || new.route != edit.route || edit.hasMoved {
                let kept = new.actors.keys.filter { !edit.added.contains($0) }
                changes.changed += ordered(kept).map(association)
            } else {
                changes.changed += edit.again.inOrder.filter { !edit.added.contains($0) }.map(association)
            }
            if changes.count >= yieldAt {
                try Task.checkCancellation()
                await Task.yield()
                yieldAt = changes.count + UndecidedPair.batchSize
            }
        }
        return changes
    }
}
