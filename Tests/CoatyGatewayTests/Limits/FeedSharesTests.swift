import Coaty
import Logging
import ProblemDetails
import TestSupport
import Testing

@testable import Base
@testable import Feeds

@Suite(.exclusive) struct FeedSharesTests {
    private let accounts: Accounts
    private let feedShares = FeedShares()

    init() {
        var limits = Limits()
        limits[.feeds].perClient = 2
        limits[.brokerConnections].perClient = 1
        accounts = Accounts(limits, logger: Logger(label: "test"))
    }

    private func channel(_ name: String) -> Observation { .channel(WireName(name)) }

    @Test func subscriptionsToOneFeedCountOnce() throws {
        let account = accounts.account(ofAddress: "192.0.2.1")
        var shares = try ["a", "a", "b", "a"].map { try feedShares.take(channel($0), by: account) }
        #expect(account.used(.feeds) == 2)
        #expect { try feedShares.take(channel("c"), by: account) } throws: { ($0 as? Problem)?.status == 429 }
        // A feed counts until its last subscription has ended.
        shares.removeFirst()
        #expect(account.used(.feeds) == 2)
        shares = []
        #expect(account.used(.feeds) == 0)
    }

    @Test func eachClientHasItsOwnShareOfOneFeed() throws {
        let clients = ["192.0.2.1", "192.0.2.2"].map { accounts.account(ofAddress: $0) }
        let shares = try clients.map { try feedShares.take(channel("a"), by: $0) }
        #expect(clients.allSatisfy { $0.used(.feeds) == 1 })
        // The clients share the feed, so the total is not the sum over the clients.
        #expect(accounts.used(.feeds) == 0)
        withExtendedLifetime(shares) {}
    }

    @Test func trafficUsesABrokerConnectionAndIoStateNone() throws {
        let account = accounts.account(ofAddress: "192.0.2.1")
        let share = try feedShares.take(.traffic([.channel]), by: account)
        #expect(account.used(.brokerConnections) == 1 && account.used(.feeds) == 0)
        #expect { try feedShares.take(.traffic([.call]), by: account) } throws: {
            ($0 as? Problem)?.status == 429
        }
        #expect(try feedShares.take(.ioState(point: CoatyUUID()), by: account) == nil)
        withExtendedLifetime(share) {}
    }

    @Test func sharesAreEmptyAfterConcurrentUse() async throws {
        let account = accounts.account(ofAddress: "192.0.2.1")
        await withTaskGroup { group in
            for worker in 0..<4 {
                group.addTask {
                    for round in 0..<2_000 {
                        let share = try? feedShares.take(channel("\((worker + round) % 3)"), by: account)
                        if account.used(.feeds) > 2 { Issue.record("the limit is exceeded") }
                        withExtendedLifetime(share) {}
                    }
                }
            }
        }
        #expect(account.used(.feeds) == 0 && account.isEmpty)
    }
}
