import HTTPServer
import Synchronization
import WebSocketServer

/// Counts the bytes that are held for all clients, for one of them, or for a part of one such as a connection.
///
/// A charge to an account is a charge to all accounts above it too. Charge allocated capacity, not just the used part.
final class MemoryAccount: Sendable {
    /// The bytes that each allocation costs in addition to its capacity.
    static let allocation = 32

    fileprivate let tally: Tally
    fileprivate let total: Tally
    /// Keeps the client's account as long as a part of it exists.
    private let owner: ClientAccount?

    /// Creates the account of all clients.
    init(_ quota: Quota) {
        tally = Tally(quota)
        total = tally
        owner = nil
    }

    /// Creates the account of one client, or of a part of one.
    ///
    /// - Parameters:
    ///   - limit: the most bytes that it holds.
    ///   - guaranteed: the bytes that it gets as long as the reserve lasts.
    init(within parent: MemoryAccount, limit: Int, guaranteed: Int = 0, owner: ClientAccount? = nil) {
        tally = Tally(within: parent.tally, limit: limit, guaranteed: guaranteed)
        total = parent.total
        self.owner = owner
    }

    /// The bytes that are charged now.
    var used: Int { tally.used }

    /// Charges bytes until they are given back. Prefer ``charge(_:with:)``, which gives back by itself.
    ///
    /// - Returns: false if there is no room; nothing is charged then.
    func take(_ bytes: Int) -> Bool { tally.take(bytes) == nil }

    /// Gives back bytes that were taken.
    func give(_ bytes: Int) { tally.give(bytes) }

    /// Whether anything more can be charged.
    var hasRoom: Bool { tally.hasRoom }

    /// Charges bytes that only this account holds, and bytes that others may hold too.
    ///
    /// - Returns: nil if there is no room; nothing is charged then.
    func charge(_ bytes: Int, with shared: SharedBytes? = nil) -> Charge? {
        reason(against: bytes, shared) == nil ? Charge(self, bytes, shared) : nil
    }

    /// Charges bytes, as ``charge(_:with:)``.
    ///
    /// - Throws: why there is no room.
    func charged(_ bytes: Int) throws(NoRoom) -> Charge {
        if let reason = reason(against: bytes, nil) { throw NoRoom(reason: reason) }
        return Charge(self, bytes)
    }

    /// Charges bytes without regard to the limits, if they can't be refused and have another bound.
    func chargeAnyway(_ bytes: Int) -> Charge {
        tally.addAnyway(bytes)
        return Charge(self, bytes)
    }

    /// Takes bytes unless there is a reason not to.
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

/// The servers charge bodies and messages that are still coming.
extension MemoryAccount: HTTPServer.ByteBudget, WebSocketServer.ByteBudget {}

/// Bytes charged to an account, which are given back when this is released. It takes no lock then.
final class Charge: Sendable {
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
    var bytes: Int { own.load(ordering: .relaxed) }

    /// Changes the charged bytes, without shared ones. Not for two threads at a time.
    ///
    /// - Returns: false if there is no room for more; nothing changes then.
    func resize(to bytes: Int) -> Bool {
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

/// Bytes that several clients hold at a time, such as the payload of an event.
///
/// They count in full for each holder, but only once in the total, as long as anybody holds them.
final class SharedBytes: Sendable {
    /// The bytes, with what their allocation costs.
    let capacity: Int
    /// Invariant: the total is charged whenever this is above 0. The first holder charges it before it is counted here, and the last
    /// one gives the bytes back afterwards, so that the total may be too high for a moment, but never too low.
    private let holders = Atomic(0)

    /// - Parameter capacity: the allocated bytes.
    init(capacity: Int) { self.capacity = capacity + MemoryAccount.allocation }

    /// Adds a holder that holds `own` bytes, too.
    ///
    /// - Returns: false if the total has no room; nothing changes then.
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
        // Another one may have been faster.
        if holders.add(1, ordering: .relaxed).oldValue > 0 { total.give(capacity) }
        return true
    }

    fileprivate func release(in total: Tally) {
        if holders.subtract(1, ordering: .relaxed).newValue == 0 { total.give(capacity) }
    }
}
