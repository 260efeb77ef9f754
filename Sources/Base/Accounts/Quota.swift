/// The maximum amount for all clients, and for one client. The same rules apply to bytes and counts.
///
/// A client never holds more than `perClient`. The last `reserve` of `total` is only for clients that hold at most
/// `guaranteed`, so that a new client can work while others use too much.
package struct Quota: Sendable, Hashable {
    let total: Int
    let perClient: Int
    let guaranteed: Int
    let reserve: Int

    package init(total: Int, perClient: Int, guaranteed: Int, reserve: Int) {
        self.total = total
        self.perClient = min(perClient, total)
        self.guaranteed = guaranteed
        self.reserve = reserve
    }

    /// Creates the quota of a count.
    ///
    /// A tenth is the reserve, of which a client gets a hundredth, but at least 1. There is no reserve if the total is
    /// below 4, or if one client may use the total.
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
