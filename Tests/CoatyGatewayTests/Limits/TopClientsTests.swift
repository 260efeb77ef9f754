import HTTPServer
import Logging
import TestSupport
import Testing

@testable import Access
@testable import Base

@Suite(.exclusive) struct TopClientsTests {
    private let accounts = Accounts(Limits(), logger: Logger(label: "test"))

    private func account(_ name: String) -> ClientAccount {
        accounts.account(of: Principal(.token(name), address: "192.0.2.1", under: .open))
    }

    private var names: [String] { accounts.topClients.map { String("\($0.client)".dropFirst("token ".count)) } }

    @Test func theMostExpensiveOfEachKindAreListedFirst() throws {
        let quiet = account("quiet")
        let worker = account("worker")
        worker.work.spend(1000)
        let holder = account("holder")
        let charge = try holder.charge(100_000)
        let publisher = account("publisher")
        for _ in 0..<3 { publisher.countPublication(50) }
        #expect(names == ["worker", "holder", "publisher", "quiet"])
        let listed = accounts.topClients
        #expect(listed[0].work == 1000 && listed[1].memory >= 100_000)
        #expect(listed[2].publications == 3 && listed[2].publishedBytes == 150)
        #expect(listed.allSatisfy { !$0.isDelayed })
        withExtendedLifetime((quiet, charge)) {}
    }

    @Test func recentWorkOutranksEarlierWork() {
        let (old, new) = (account("old"), account("new"))
        // Spend in small parts, each of which is paid immediately.
        for second in 0..<100 as Range<Int64> { old.work.spend(1_000_000, at: (second - 1000) * 1_000_000_000) }
        new.work.spend(20_000_000)
        #expect(old.work.spent > new.work.spent)
        #expect(names == ["new", "old"])
        #expect(accounts.topClients.map(\.isDelayed) == [true, false])
    }

    @Test func twentyOfManyAreListed() {
        let many = (0..<200).map { account("\($0)") }
        var charges: [Charge] = []
        for (index, client) in many.enumerated() {
            client.work.spend(index)
            // Without memory, the order of the clients would be undefined.
            charges.append(client.memory.chargeAnyway(index))
            for _ in 0..<(200 - index) { client.countPublication(1) }
        }
        let listed = names
        #expect(listed.count == Accounts.maximumTopClients && Set(listed).count == listed.count)
        // The client with the most work, and the one with the most publications.
        #expect(listed.first == "199" && listed.contains("0"))
        #expect(!listed.contains("100"))
        withExtendedLifetime(charges) {}
    }

    @Test func nobodyIsListedWithoutClients() { #expect(accounts.topClients.isEmpty) }
}
