import OrderedCollections

/// The changes of a routing table so far, and the pairs that are still to be decided.
struct RoutingRun {
    /// Actors, in the order in which they are published.
    struct Actors {
        private var places: [CoatyUUID: Place] = [:]

        var inOrder: [CoatyUUID] { places.sorted { $0.value < $1.value }.map(\.key) }

        func contains(_ id: CoatyUUID) -> Bool { places[id] != nil }

        mutating func insert(_ id: CoatyUUID, _ place: Place) { places[id] = place }

        /// - Returns: whether it was there.
        mutating func remove(_ id: CoatyUUID) -> Bool { places.removeValue(forKey: id) != nil }
    }

    /// The changes of one source.
    struct Edit {
        /// The route and the rate before.
        let route: String?
        let updateRate: Int?
        /// Whether the source belongs to another node than before, whose agent does not know its associations.
        var hasMoved = false
        private(set) var added = Actors()
        private(set) var removed = Actors()
        /// Kept, with an actor of another node than before.
        private(set) var again = Actors()
        /// The largest rate that was added.
        private(set) var largest: Int?
        /// Whether a pair was removed that had the largest rate of all.
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

    /// How the pairs of one kind are decided, and the actors of that kind. Both stay the same for the whole run.
    struct Kind {
        let verdict: RoutingVerdict
        let actors: [RoutedPoint<IoActor>]
    }

    /// Judges the pairs.
    var work: RoutingWork
    /// By the source, in the order in which they were touched.
    var edits: OrderedDictionary<CoatyUUID, Edit> = [:]
    var kinds: [PointKind: Kind] = [:]
    /// Pairs to be decided next, at most a batch.
    private(set) var pending: [UndecidedPair] = []

    init(_ work: RoutingWork) { self.work = work }

    /// Adds a pair that is to be decided.
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
