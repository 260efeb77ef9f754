import Synchronization

/// The bytes queued for one connection, charged to the account of its client: collected responses, and the events and responses that
/// its outbound queue holds, including events that throttling holds back.
///
/// Its lock is a leaf: nothing else is locked while it is held.
final class QueueMemory: Sendable {
    private struct State {
        var account: ClientAccount
        var bytes = 0
    }

    private let state: Mutex<State>

    init(_ account: ClientAccount) { state = Mutex(State(account: account)) }

    deinit { state.withLock { $0.account.memory.add(-$0.bytes) } }

    /// Whether more may be queued. Once the client or all clients hold as much as they may, a subscription that would queue more
    /// follows its overflow policy, and a request that would queue more ends.
    var hasRoom: Bool { state.withLock(\.account.memory.hasRoom) }

    /// The queued bytes.
    var bytes: Int { state.withLock(\.bytes) }

    /// The client that pays.
    var client: ClientKey { state.withLock(\.account.client) }

    /// Adds to the number of queued bytes, or subtracts from it if `bytes` is negative. Never fails.
    ///
    /// - Returns: whether there is still room afterwards.
    @discardableResult
    func add(_ bytes: Int) -> Bool {
        state.withLock { state in
            state.bytes += bytes
            state.account.memory.add(bytes)
            return state.account.memory.hasRoom
        }
    }

    /// Charges the account of another client from now on, since the client has authenticated.
    func move(to account: ClientAccount) {
        state.withLock { state in
            account.memory.add(state.bytes)
            state.account.memory.add(-state.bytes)
            state.account = account
        }
    }
}
