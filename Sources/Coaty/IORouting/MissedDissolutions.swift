/// The dissolved associations that agents may have missed.
///
/// An agent without a connection keeps its associations, and uses them when it is back. A dissolution is therefore kept
/// for both of its IO points: for ``agingTime`` or longer, because a broken connection is noticed late, and as long as
/// the point is away.
struct MissedDissolutions {
    /// Minimum time that a dissolution is kept while the router is online. A broker notices the loss of a connection
    /// within one and a half times its keep-alive interval.
    static let agingTime = Duration.seconds(300)

    typealias Pair = AssociateQueue.Pair

    private struct Generation {
        /// By IO point.
        var pairs: [CoatyUUID: Set<Pair>] = [:]
        var count = 0

        mutating func insert(_ pair: Pair, for point: CoatyUUID) {
            if pairs[point, default: []].insert(pair).inserted { count += 1 }
        }

        mutating func remove(_ pair: Pair, for point: CoatyUUID) {
            guard pairs[point]?.remove(pair) != nil else { return }
            count -= 1
            if pairs[point]?.isEmpty ?? false { pairs[point] = nil }
        }
    }

    private var young = Generation()
    private var old = Generation()
    private var begin: ContinuousClock.Instant?
    /// The online period in which the time runs.
    private var period: Int?

    var count: Int { young.count + old.count }

    /// Records that a pair is dissolved.
    mutating func note(_ pair: Pair) {
        if young.count > IoRouter.maximumMissedDissolutions / 2 - 2 { (old, young) = (young, Generation()) }
        young.insert(pair, for: pair.sourceId)
        young.insert(pair, for: pair.actorId)
    }

    /// Records that a pair is associated.
    mutating func forget(_ pair: Pair) {
        guard count > 0 else { return }
        for point in [pair.sourceId, pair.actorId] {
            young.remove(pair, for: point)
            old.remove(pair, for: point)
        }
    }

    /// Returns the pairs of IO points whose agent has returned.
    func pairs(of points: some Sequence<CoatyUUID>) -> Set<Pair> {
        guard count > 0 else { return [] }
        return points.reduce(into: []) { pairs, point in
            pairs.formUnion(young.pairs[point] ?? [])
            pairs.formUnion(old.pairs[point] ?? [])
        }
    }

    /// Forgets what the points that were present all the time have received.
    ///
    /// - Parameters:
    ///   - period: the online period of the router; nil while it is offline. Time counts only within one period.
    ///   - isAway: returns whether the agent of an IO point is not online.
    mutating func age(at now: ContinuousClock.Instant, inPeriod period: Int?, isAway: (CoatyUUID) -> Bool) {
        guard let period, period == self.period, let begin else {
            (self.period, self.begin) = (period, now)
            return
        }
        guard count > 0, begin.duration(to: now) >= Self.agingTime else { return }
        var away = Generation()
        away.pairs = old.pairs.filter { isAway($0.key) }
        away.count = away.pairs.values.reduce(0) { $0 + $1.count }
        (old, young) = (young, away)
        self.begin = now
    }
}
