import TestSupport
import Testing

@testable import Base

@Suite(.exclusive) struct MemoryAccountTests {
    private let total = MemoryAccount(Quota(total: 1000, perClient: 600, guaranteed: 50, reserve: 100))

    private func client(_ limit: Int = 600) -> MemoryAccount {
        MemoryAccount(within: total, limit: limit, guaranteed: 50)
    }

    @Test func chargesAreGivenBack() {
        let client = client()
        let charge = client.charge(100)
        #expect(charge?.bytes == 100 && client.used == 100 && total.used == 100)
        _ = consume charge
        #expect(client.used == 0 && total.used == 0)
    }

    @Test func clientGetsNoMoreThanItsShare() throws {
        let client = client()
        let charge = try client.charged(600)
        #expect { try client.charged(1) } throws: { ($0 as? MemoryAccount.NoRoom)?.reason == .own }
        #expect(client.used == 600 && total.used == 600)
        withExtendedLifetime(charge) {}
    }

    @Test func reserveIsForClientsBelowTheirGuaranteedShare() throws {
        let greedy = [client(), client()]
        let charges = [try greedy[0].charged(600), try greedy[1].charged(300)]
        #expect { try greedy[1].charged(1) } throws: { ($0 as? MemoryAccount.NoRoom)?.reason == .all }
        let (new, other) = (client(), client())
        let own = [try new.charged(50), try other.charged(50)]
        #expect(new.charge(1) == nil)
        #expect(total.used == 1000)
        // All memory is used.
        #expect { try client().charged(1) } throws: { ($0 as? MemoryAccount.NoRoom)?.reason == .all }
        withExtendedLifetime((charges, own)) {}
    }

    @Test func connectionIsBoundedWithinItsClient() {
        let client = client()
        let connection = MemoryAccount(within: client, limit: 100)
        let charge = connection.charge(100)
        #expect(connection.charge(1) == nil && client.charge(1) != nil)
        #expect(connection.used == 100 && client.used == 100 && total.used == 100)
        withExtendedLifetime(charge) {}
    }

    @Test func sharedBytesCountOnceInTheTotalAndInFullForEachHolder() {
        let (one, other) = (client(), client())
        let size = 100 + MemoryAccount.allocation
        do {
            let shared = SharedBytes(capacity: 100)
            #expect(total.used == 0)
            var charges = [one.charge(10, with: shared), other.charge(0, with: shared), other.charge(0, with: shared)]
            #expect(one.used == size + 10 && other.used == 2 * size && total.used == size + 10)
            charges.removeFirst(2)
            #expect(one.used == 0 && other.used == size && total.used == size)
            charges = []
            // No account is charged for the bytes, although they exist.
            #expect(total.used == 0)
            charges = [one.charge(0, with: shared)]
            #expect(total.used == size)
            withExtendedLifetime((charges, shared)) {}
        }
        #expect(one.used == 0 && other.used == 0 && total.used == 0)
    }

    @Test func refusedChargeOfSharedBytesChangesNothing() {
        let small = client(100)
        let shared = SharedBytes(capacity: 200)
        #expect(small.charge(10, with: shared) == nil)
        #expect(small.used == 0 && total.used == 0)
        let full = [client(600).charge(600), client(600).charge(300)]
        #expect(client().charge(0, with: shared) == nil)
        #expect(total.used == 900)
        withExtendedLifetime(full) {}
    }

    @Test func chargeCanBeResized() throws {
        let client = client()
        let charge = try client.charged(10)
        #expect(charge.resize(to: 600) && !charge.resize(to: 601))
        #expect(client.used == 600)
        #expect(charge.resize(to: 1) && client.used == 1 && total.used == 1)
    }

    /// If many threads charge and release at random, no account exceeds its limit, and all accounts are empty at the
    /// end.
    @Test(arguments: 0..<4 as Range<UInt64>) func accountsAreEmptyAfterRandomUse(seed: UInt64) async {
        let total = MemoryAccount(Quota(total: 100_000, perClient: 40_000, guaranteed: 500, reserve: 10_000))
        let clients = (0..<4).map { _ in MemoryAccount(within: total, limit: 40_000, guaranteed: 500) }
        let shared = (0..<3).map { SharedBytes(capacity: 1000 * $0) }
        await withTaskGroup { group in
            for worker in 0..<4 as Range<UInt64> {
                group.addTask {
                    var random = Generator(state: seed * 31 + worker + 1)
                    var held: [Charge] = []
                    let connections = clients.map { MemoryAccount(within: $0, limit: 20_000) }
                    for _ in 0..<5_000 {
                        let account = (Bool.random(using: &random) ? clients : connections).randomElement(
                            using: &random
                        )!
                        switch Int.random(in: 0..<4, using: &random) {
                        case 0: account.charge(.random(in: 0...2_000, using: &random)).map { held.append($0) }
                        case 1: account.charge(7, with: shared.randomElement(using: &random)).map { held.append($0) }
                        case 2: _ = held.randomElement(using: &random)?.resize(to: .random(in: 0...500, using: &random))
                        default:
                            if let index = held.indices.randomElement(using: &random) { held.remove(at: index) }
                        }
                        if total.used > 100_000 || account.used > 40_000 { Issue.record("the limit is exceeded") }
                    }
                }
            }
        }
        #expect(total.used == 0)
        #expect(clients.allSatisfy { $0.used == 0 })
    }
}

/// A xorshift64* generator, so that a failure can be reproduced.
private struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state ^= state >> 12
        state ^= state << 25
        state ^= state >> 27
        return state &* 0x2545_F491_4F6C_DD1D
    }
}
