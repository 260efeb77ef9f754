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
    /// A tenth is the reserve, of which a client gets a hundredth, but at least 1. There is none if the total is below 4, or if one
    /// client may have everything.
    ///
    /// - Parameter perClient: nil for half of the total.
    init(count total: Int, perClient: Int? = nil) {
        let perClient = min(perClient ?? (total + 1) / 2, total)
        self.init(
            total: total,
            perClient: perClient,
            guaranteed: max(1, total / 1000),
            reserve: total < 4 ? 0 : min(max(1, total / 10), total - perClient)
        )
    }
}
