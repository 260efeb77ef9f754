/// How much may be taken in all, and by one client. The same rule holds for bytes and for counts.
///
/// A client never holds more than `perClient`. The last `reserve` of `total` is only for clients that hold at most `guaranteed`, so
/// that a new client can work while others are greedy.
struct Quota: Sendable, Hashable {
    let total: Int
    let perClient: Int
    let guaranteed: Int
    let reserve: Int

    init(total: Int, perClient: Int, guaranteed: Int, reserve: Int) {
        self.total = total
        self.perClient = min(perClient, total)
        self.guaranteed = guaranteed
        self.reserve = reserve
    }

    /// The quota of a count.
    ///
    /// A tenth is the reserve, from which a client gets a hundredth of it, but at least 1. A total below 4 has no reserve.
    ///
    /// - Parameter perClient: nil for half of the total.
    init(count total: Int, perClient: Int? = nil) {
        self.init(
            total: total,
            perClient: perClient ?? (total + 1) / 2,
            guaranteed: max(1, total / 1000),
            reserve: total < 4 ? 0 : max(1, total / 10)
        )
    }
}
