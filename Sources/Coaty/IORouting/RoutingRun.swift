import OrderedCollections

/// The changes of a routing table so far, and the undecided pairs.
struct RoutingRun {
    /// Actors, in the order in which they are published.
    struct Actors {
        private var places: [CoatyUUID: Place] = [:]

        var inOrder: [CoatyUUID] { places.sorted { $0.value < $1.value }.map(\.key) }

        func contains(_ id: CoatyUUID) -> Bool { places[id] != nil }

        mutating func insert(_ id: CoatyUUID, _ place: Place) { places[id] = place }

        /// - Returns: whether the actor was contained.
        mutating func remove(_ id: CoatyUUID) -> Bool { places.removeValue(forKey: id) != nil }
    }

    /// The changes of one source.
    struct Edit {
        /// The previous route and rate.
        let route: String?
        let updateRate: Int?
        /// Whether the source now belongs to another node, whose agent does not know its associations.
        var hasMoved = false
        private(set) var added = Actors()
        private(set) var removed = Actors()
        /// Kept associations with actors that now belong to another node.
        private(set) var again = Actors()
        /// The largest rate that was added.
        private(set) var largest: Int?
        /// Whether a pair with the largest rate of all was removed.
        private(set) var hasLostLargest = false

        init(route: String?, updateRate: Int?) {
            self.route = route
            self.updateRate = updateRate
        }

        mutating func add(_ actorId: CoatyUUID, _ place: Place, rate: Int?) {
            if !removed.remove(actorId) { added.insert(actorId, place) }
            largest = [largest, rate].compactMap(\.self).max()
        }

        mutating func remove(_ actorId: CoatyUUID, _ place: Place, rate: Int?) {
            if !added.remove(actorId) { removed.insert(actorId, place) }
            lose(rate)
        }

        mutating func exchange(_ old: Int?, for new: Int?) {
            guard old != new else { return }
            lose(old)
            largest = [largest, new].compactMap(\.self).max()
        }

        mutating func publishAgain(_ actorId: CoatyUUID, _ place: Place) { again.insert(actorId, place) }

        private mutating func lose(_ rate: Int?) {
            guard let rate else { return }
            if rate >= (updateRate ?? 0) || rate >= (largest ?? .max) { hasLostLargest = true }
        }
    }

    /// The way to decide on pairs of one kind, and the actors of that kind. Both are constant during a run.
    struct Kind {
        let verdict: RoutingVerdict
        let actors: [RoutedPoint<IoActor>]
    }

    /// Evaluates the pairs.
    var work: RoutingWork
    /// The changes by source, in the order in which the sources were affected.
    var edits: OrderedDictionary<CoatyUUID, Edit> = [:]
    var kinds: [PointKind: Kind] = [:]
    /// The pairs to decide next, at most one batch.
    private(set) var pending: [UndecidedPair] = []

    init(_ work: RoutingWork) { self.work = work }

    /// Adds an undecided pair.
    ///
    /// - Returns: whether the batch is full.
    mutating func add(_ pair: UndecidedPair) -> Bool {
        pending.append(pair)
        return pending.count >= UndecidedPair.batchSize
    }

    mutating func takePending() -> [UndecidedPair] {
        defer { pending = [] }
        return pending
    }
}
