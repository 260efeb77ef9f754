import Logging
import ProblemDetails
import TestSupport
import Testing

@testable import Access
@testable import Base

@Suite(.exclusive) struct AccountsTests {
    private func accounts(_ change: (inout Limits) -> Void = { _ in }) -> Accounts {
        var limits = Limits()
        change(&limits)
        return Accounts(limits, logger: Logger(label: "test"))
    }

    private func status(_ body: () throws -> Void) -> Int? {
        do {
            try body()
            return nil
        } catch {
            return (error as? Problem)?.status
        }
    }

    @Test func clientsWithOneTokenShareAnAccount() {
        let accounts = accounts()
        let one = accounts.account(of: Principal(.token("a"), address: "192.0.2.1", under: .open))
        #expect(one === accounts.account(of: Principal(.token("a"), address: "192.0.2.2", under: .open)))
        #expect(one !== accounts.account(of: Principal(.token("b"), address: "192.0.2.1", under: .open)))
        #expect(one !== accounts.account(ofAddress: "192.0.2.1"))
    }

    @Test func anonymousClientsOfANetworkShareAnAccount() {
        let accounts = accounts()
        let one = accounts.account(ofAddress: "2001:db8:1:2::3")
        #expect(one === accounts.account(ofAddress: "2001:db8:1:2:4::5"))
        #expect(one !== accounts.account(ofAddress: "2001:db8:1:3::3"))
        #expect(one.client.description == "address 2001:db8:1:2::/64")
        #expect(accounts.account(ofAddress: "192.0.2.7").client.description == "address 192.0.2.7")
    }

    @Test func fullShareIs429AndFullTotalIs503() throws {
        let accounts = accounts { $0[.identities].total = 4 }
        let clients = ["1", "2", "3"].map { accounts.account(ofAddress: "192.0.2.\($0)") }
        var places = try (0..<2).map { _ in try clients[0].take(.identities) }
        #expect(status { _ = try clients[0].take(.identities) } == 429)
        // The last place is reserved for clients that have none.
        places.append(try clients[1].take(.identities))
        #expect(status { _ = try clients[1].take(.identities) } == 503)
        places.append(try clients[2].take(.identities))
        #expect(accounts.used(.identities) == 4)
        #expect(accounts.refusals.all.values.sorted() == [1, 1])
        places = []
        #expect(accounts.used(.identities) == 0 && clients.allSatisfy(\.isEmpty))
    }

    @Test func aTotalOfOneCanBeUsed() throws {
        let accounts = accounts { $0[.ioNodes].total = 1 }
        let place = try accounts.account(ofAddress: "192.0.2.1").take(.ioNodes)
        #expect(status { _ = try accounts.account(ofAddress: "192.0.2.2").take(.ioNodes) } == 503)
        withExtendedLifetime(place) {}
    }

    @Test func chargeBeyondTheClientMemoryIsRefused() throws {
        let accounts = accounts { $0.memoryPerClient = 1 << 20 }
        let client = accounts.account(ofAddress: "192.0.2.1")
        let charge = try client.charge(1 << 20)
        #expect(status { _ = try client.charge(1) } == 429)
        withExtendedLifetime(charge) {}
    }

    @Test func accountsInUseOutliveASweep() throws {
        let accounts = accounts()
        let place = try accounts.account(ofAddress: "192.0.2.1").take(.subscriptions)
        let charge = try accounts.account(ofAddress: "192.0.2.2").charge(1)
        let connection = accounts.account(ofAddress: "192.0.2.3").connection()
        for network in 0..<1000 { _ = accounts.account(ofAddress: "10.0.\(network / 250).\(network % 250)") }
        #expect(accounts.clients.count < 200)
        #expect(accounts.account(ofAddress: "192.0.2.1").used(.subscriptions) == 1)
        #expect(accounts.account(ofAddress: "192.0.2.2").memory.used == 1)
        let last = connection.charge(5)
        #expect(accounts.account(ofAddress: "192.0.2.3").memory.used == 5)
        withExtendedLifetime((place, charge, last)) {}
    }
}
