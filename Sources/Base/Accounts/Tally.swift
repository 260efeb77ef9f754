import Synchronization

/// An amount that holders take and give back, at this level and at all levels above it.
///
/// It has no lock: each level is an atomic number that never exceeds its limit.
package final class Tally: Sendable {
    /// The reason why nothing was taken.
    package enum Exhaustion: Sendable, Hashable {
        /// The limit of the client, or of a part of it, is reached.
        case own
        /// The limit of all clients together is reached.
        case all
    }

    private let parent: Tally?
    private let maximum: Atomic<Int>
    /// Maximum amount for which the reserve of the levels above may be used.
    private let guaranteed: Int
    /// The part of the limit for holders within their guaranteed amount.
    private let reserved: Atomic<Int>
    private let amount = Atomic(0)

    private var limit: Int { maximum.load(ordering: .relaxed) }
    private var reserve: Int { reserved.load(ordering: .relaxed) }

    /// Creates the top level.
    init(_ quota: Quota) {
        parent = nil
        maximum = Atomic(quota.total)
        guaranteed = 0
        reserved = Atomic(quota.reserve)
    }

    /// Creates the level of a client, or of a part of one.
    init(within parent: Tally, limit: Int, guaranteed: Int = 0) {
        self.parent = parent
        maximum = Atomic(limit)
        self.guaranteed = guaranteed
        reserved = Atomic(0)
    }

    /// Changes the limit of a client. Amounts that are already taken stay taken.
    func change(limit: Int) { maximum.store(limit, ordering: .relaxed) }

    /// Changes the reserve of the top level.
    func change(reserve: Int) { reserved.store(reserve, ordering: .relaxed) }

    /// The amount that is currently taken.
    var used: Int { amount.load(ordering: .relaxed) }

    /// Takes an amount at all levels, or at none.
    ///
    /// - Returns: the reason why nothing was taken; nil if the amount was taken.
    func take(_ amount: Int) -> Exhaustion? {
        take(amount, below: nil, isGuaranteed: false) { _ in nil }
    }

    /// Takes an amount at the levels below the top, and then calls `finish`.
    ///
    /// - Parameter finish: called with whether the client is within its guaranteed amount. If it returns a reason,
    ///   nothing is taken.
    func take(_ amount: Int, below top: Tally, finish: (_ isGuaranteed: Bool) -> Exhaustion?) -> Exhaustion? {
        take(amount, below: top, isGuaranteed: false, finish)
    }

    private func take(
        _ amount: Int,
        below top: Tally?,
        isGuaranteed: Bool,
        _ finish: (Bool) -> Exhaustion?
    ) -> Exhaustion? {
        guard self !== top else { return finish(isGuaranteed) }
        guard let used = add(amount, isGuaranteed: isGuaranteed) else { return parent == nil ? .all : .own }
        let isGuaranteed = isGuaranteed || used <= guaranteed
        guard let parent else { return finish(isGuaranteed) }
        let exhaustion = parent.take(amount, below: top, isGuaranteed: isGuaranteed, finish)
        if exhaustion != nil { self.amount.subtract(amount, ordering: .relaxed) }
        return exhaustion
    }

    /// Adds to the amount of this level only.
    ///
    /// - Returns: the new amount; nil if there is no room.
    func add(_ amount: Int, isGuaranteed: Bool) -> Int? {
        let bound = isGuaranteed ? limit : limit - reserve
        var current = self.amount.load(ordering: .relaxed)
        while true {
            guard amount <= bound - current else { return nil }
            let (isDone, original) = self.amount.weakCompareExchange(
                expected: current,
                desired: current + amount,
                ordering: .relaxed
            )
            if isDone { return current + amount }
            current = original
        }
    }

    /// Adds to the amount of all levels without regard to the limits, or subtracts from it if `amount` is negative.
    func addAnyway(_ amount: Int) {
        var level: Tally? = self
        while let current = level {
            current.amount.add(amount, ordering: .relaxed)
            level = current.parent
        }
    }

    /// Whether anything more can be taken.
    var hasRoom: Bool {
        var (level, isGuaranteed): (Tally?, Bool) = (self, false)
        while let current = level {
            let used = current.used
            guard used < (isGuaranteed ? current.limit : current.limit - current.reserve) else { return false }
            isGuaranteed = isGuaranteed || used < current.guaranteed
            level = current.parent
        }
        return true
    }

    /// Gives back an amount at all levels.
    ///
    /// - Parameter top: the level at which to stop; nil for none.
    func give(_ amount: Int, below top: Tally? = nil) {
        var level: Tally? = self
        while let current = level, current !== top {
            current.amount.subtract(amount, ordering: .relaxed)
            level = current.parent
        }
    }
}

extension Tally.Exhaustion {
    /// The name in metrics and in the status.
    package var label: String {
        switch self {
        case .own: "own"
        case .all: "all"
        }
    }
}
