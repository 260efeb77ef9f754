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

    /// Adds to the charged bytes without regard to the limits, or subtracts from them if `bytes` is negative.
    func add(_ bytes: Int) { tally.addAnyway(bytes) }

    /// Whether anything more can be charged.
    var hasRoom: Bool { tally.hasRoom }

    /// Charges bytes that only this account holds, and bytes that others may hold too.
    ///
    /// - Returns: nil if there is no room; nothing is charged then.
    func charge(_ bytes: Int, with shared: SharedBytes? = nil) -> Charge? {
        let charge = try? charged(bytes, with: shared)
        return charge
    }

    /// Charges bytes that others may hold too.
    ///
    /// - Returns: nil if there is no room; nothing is charged then.
    func charge(_ shared: SharedBytes) -> Charge? { charge(0, with: shared) }

    /// Charges bytes, as ``charge(_:with:)``.
    ///
    /// - Throws: why there is no room.
    func charged(_ bytes: Int, with shared: SharedBytes? = nil) throws(NoRoom) -> Charge {
        if let reason = tally.take(bytes) { throw NoRoom(reason: reason) }
        guard let shared else { return Charge(self, bytes) }
        let reason = tally.take(shared.capacity, below: total) { isGuaranteed in
            shared.isCharged(isGuaranteed: isGuaranteed) ? nil : .all
        }
        if let reason {
            tally.give(bytes)
            throw NoRoom(reason: reason)
        }
        return Charge(self, bytes, shared)
    }

    fileprivate func give(_ shared: SharedBytes) { tally.give(shared.capacity, below: total) }

    /// The account of the client, or that of all clients, has no room.
    struct NoRoom: Error {
        let reason: Tally.Exhaustion
    }
}

/// The servers charge bodies and messages that are still coming.
extension MemoryAccount: HTTPServer.ByteBudget, WebSocketServer.ByteBudget {}

/// Bytes charged to an account, which are given back when this is released.
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
        account.give(own.load(ordering: .relaxed))
        if let shared { account.give(shared) }
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

/// Bytes that several clients hold at a time, such as the text of an event.
///
/// They count in full for each holder, but only once in the total: from the first charge until this is released.
final class SharedBytes: Sendable {
    /// The bytes, with what their allocation costs.
    let capacity: Int
    private let total: Tally
    private let isCharged = Mutex(false)

    /// - Parameters:
    ///   - capacity: the allocated bytes.
    ///   - account: any account below the total.
    init(capacity: Int, in account: MemoryAccount) {
        self.capacity = capacity + MemoryAccount.allocation
        total = account.total
    }

    deinit {
        if isCharged.withLock(\.self) { total.give(capacity) }
    }

    /// Charges the total if that has not been done.
    fileprivate func isCharged(isGuaranteed: Bool) -> Bool {
        isCharged.withLock { isCharged in
            if !isCharged { isCharged = total.add(capacity, isGuaranteed: isGuaranteed) != nil }
            return isCharged
        }
    }
}
