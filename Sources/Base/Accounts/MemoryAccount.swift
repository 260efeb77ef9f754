import Synchronization

/// Counts the bytes of all clients, of one client, or of a part of one, such as a connection.
///
/// A charge to an account is also a charge to all accounts above it. Charge the allocated capacity, rather than the
/// used part.
package final class MemoryAccount: Sendable {
    /// The overhead of each allocation, in bytes.
    static let allocation = 32

    fileprivate let tally: Tally
    fileprivate let total: Tally
    /// Keeps the client's account alive as long as a part of it exists.
    private let owner: ClientAccount?

    /// Creates the account of all clients.
    package init(_ quota: Quota) {
        tally = Tally(quota)
        total = tally
        owner = nil
    }

    /// Creates the account of one client, or of a part of one.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of bytes.
    ///   - guaranteed: the number of bytes that are available as long as the reserve lasts.
    package init(within parent: MemoryAccount, limit: Int, guaranteed: Int = 0, owner: ClientAccount? = nil) {
        tally = Tally(within: parent.tally, limit: limit, guaranteed: guaranteed)
        total = parent.total
        self.owner = owner
    }

    /// The bytes that are charged now.
    package var used: Int { tally.used }

    /// Charges bytes until they are given back. Prefer ``charge(_:with:)``, which gives them back automatically.
    ///
    /// - Returns: false if there is no room; then nothing is charged.
    package func take(_ bytes: Int) -> Bool { tally.take(bytes) == nil }

    /// Gives back bytes that were taken.
    package func give(_ bytes: Int) { tally.give(bytes) }

    /// Whether anything more can be charged.
    package var hasRoom: Bool { tally.hasRoom }

    /// Charges bytes that only this account uses, and bytes that other accounts may share.
    ///
    /// - Returns: nil if there is no room; then nothing is charged.
    package func charge(_ bytes: Int, with shared: SharedBytes? = nil) -> Charge? {
        reason(against: bytes, shared) == nil ? Charge(self, bytes, shared) : nil
    }

    /// Charges bytes like ``charge(_:with:)``.
    ///
    /// - Throws: the reason why there is no room.
    func charged(_ bytes: Int) throws(NoRoom) -> Charge {
        if let reason = reason(against: bytes, nil) { throw NoRoom(reason: reason) }
        return Charge(self, bytes)
    }

    /// Charges bytes without regard to the limits. For bytes that can't be refused and have another bound.
    package func chargeAnyway(_ bytes: Int) -> Charge {
        tally.addAnyway(bytes)
        return Charge(self, bytes)
    }

    /// Takes bytes, or returns the reason why they can't be taken.
    private func reason(against bytes: Int, _ shared: SharedBytes?) -> Tally.Exhaustion? {
        guard let shared else { return tally.take(bytes) }
        return tally.take(bytes + shared.capacity, below: total) { isGuaranteed in
            shared.hold(with: bytes, in: total, isGuaranteed: isGuaranteed) ? nil : .all
        }
    }

    fileprivate func give(_ bytes: Int, with shared: SharedBytes) {
        tally.give(bytes + shared.capacity, below: total)
        total.give(bytes)
        shared.release(in: total)
    }

    /// The account of the client, or that of all clients, has no room.
    struct NoRoom: Error {
        let reason: Tally.Exhaustion
    }
}

/// Bytes that are charged to an account, and given back without a lock when this object is released.
package final class Charge: Sendable {
    private let account: MemoryAccount
    private let own: Atomic<Int>
    private let shared: SharedBytes?

    fileprivate init(_ account: MemoryAccount, _ bytes: Int, _ shared: SharedBytes? = nil) {
        self.account = account
        own = Atomic(bytes)
        self.shared = shared
    }

    deinit {
        let bytes = own.load(ordering: .relaxed)
        if let shared { account.give(bytes, with: shared) } else { account.give(bytes) }
    }

    /// The charged bytes, without shared ones.
    package var bytes: Int { own.load(ordering: .relaxed) }

    /// Changes the charged bytes, without shared ones. Only one thread at a time may call it.
    ///
    /// - Returns: false if there is no room for more; then nothing changes.
    package func resize(to bytes: Int) -> Bool {
        let current = own.load(ordering: .relaxed)
        if bytes > current {
            guard account.take(bytes - current) else { return false }
        } else {
            account.give(current - bytes)
        }
        own.store(bytes, ordering: .relaxed)
        return true
    }
}

/// Bytes that several clients share, such as the payload of an event.
///
/// They count in full for each client, but only once in the total, as long as any client holds them.
package final class SharedBytes: Sendable {
    /// The bytes, including the overhead of their allocation.
    package let capacity: Int
    /// Invariant: the total is charged whenever this is above 0. The first holder charges it before it is counted here,
    /// and the last one gives the bytes back afterwards, so that the total may be too high for a moment, but never too
    /// low.
    private let holders = Atomic(0)

    /// - Parameter capacity: the allocated bytes.
    package init(capacity: Int) { self.capacity = capacity + MemoryAccount.allocation }

    /// Adds a holder, which also holds `own` bytes.
    ///
    /// - Returns: false if the total has no room; then nothing changes.
    fileprivate func hold(with own: Int, in total: Tally, isGuaranteed: Bool) -> Bool {
        guard total.add(own, isGuaranteed: isGuaranteed) != nil else { return false }
        var count = holders.load(ordering: .relaxed)
        while count > 0 {
            let (isDone, original) = holders.weakCompareExchange(
                expected: count,
                desired: count + 1,
                ordering: .relaxed
            )
            if isDone { return true }
            count = original
        }
        guard total.add(capacity, isGuaranteed: isGuaranteed) != nil else {
            total.give(own)
            return false
        }
        // Another holder may have charged the total first.
        if holders.add(1, ordering: .relaxed).oldValue > 0 { total.give(capacity) }
        return true
    }

    fileprivate func release(in total: Tally) {
        if holders.subtract(1, ordering: .relaxed).newValue == 0 { total.give(capacity) }
    }
}
