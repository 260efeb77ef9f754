import HTTPServer
import Logging
import ProblemDetails
import TestSupport
import Testing

@testable import Base
@testable import Edge

@Suite(.exclusive) struct IdempotencyTableTests {
    private let table = IdempotencyTable()
    private let now = ContinuousClock.now
    private let request = RequestFingerprint([Array("a".utf8)])

    private func account(_ change: (inout Limits) -> Void = { _ in }) -> ClientAccount {
        var limits = Limits()
        change(&limits)
        return Accounts(limits, logger: Logger(label: "test")).account(ofAddress: "192.0.2.1")
    }

    private func claim(_ start: IdempotencyTable.Start) throws -> IdempotencyClaim {
        guard case .first(let claim) = start else { throw Unexpected(start: start) }
        return claim
    }

    private struct Unexpected: Error {
        let start: IdempotencyTable.Start
    }

    private func name(_ start: IdempotencyTable.Start) -> String {
        switch start {
        case .first: "first"
        case .repeated(let response): "repeated \(response.status)"
        case .inProgress: "in progress"
        case .different: "different"
        }
    }

    @Test func answersAreKeptForTenMinutes() throws {
        let account = account()
        func begin(_ seconds: Int) throws -> IdempotencyTable.Start {
            try table.begin("k", request, for: account, at: now + .seconds(seconds))
        }
        let first = try claim(try begin(0))
        #expect(name(try begin(3000)) == "in progress")
        first.keep(HTTPResponse(status: 202, body: "first"), at: now + .seconds(3600))
        // Only the first answer counts, also for the client of the first request.
        #expect(first.keep(HTTPResponse(status: 200, body: "second"), at: now + .seconds(3600)).status == 202)
        #expect(name(try begin(3600 + 599)) == "repeated 202")
        #expect(name(try begin(3600 + 600)) == "first")
        // The second repetition did not extend the lifetime of the first answer, and all its resources are released.
        #expect(account.used(.idempotencyKeys) == 0 && account.memory.used == 0)
        #expect(table.replays == 1)
    }

    @Test func answersExpireWithoutAnyRequest() throws {
        let table = IdempotencyTable(lifetime: .milliseconds(200))
        let account = account()
        for (key, delay) in [("a", 0), ("b", 300)] {
            let claim = try claim(try table.begin(key, request, for: account))
            claim.keep(HTTPResponse(status: 202), at: .now + .milliseconds(delay))
        }
        #expect(account.used(.idempotencyKeys) == 2)
        try waitUntil("both have expired") { account.used(.idempotencyKeys) == 0 && account.memory.used == 0 }
        // The timer is started again.
        try claim(try table.begin("c", request, for: account)).keep(HTTPResponse(status: 202))
        try waitUntil("the next one has expired") { account.used(.idempotencyKeys) == 0 }
    }

    @Test func aClaimWithoutAnAnswerFreesItsKey() throws {
        let account = account()
        var first: IdempotencyClaim? = try claim(try table.begin("k", request, for: account))
        #expect(account.used(.idempotencyKeys) == 1 && account.memory.used == IdempotencyTable.cost + 1)
        withExtendedLifetime(first) {}
        first = nil
        #expect(account.used(.idempotencyKeys) == 0 && account.memory.used == 0)
        // Late calls of an earlier request do not affect the next request with the same key.
        let second = try claim(try table.begin("k", request, for: account))
        second.free()
        let third = try claim(try table.begin("k", request, for: account))
        second.keep(HTTPResponse(status: 202))
        second.free()
        #expect(name(try table.begin("k", request, for: account)) == "in progress")
        third.keep(HTTPResponse(status: 204))
        third.free()
        #expect(name(try table.begin("k", request, for: account)) == "repeated 204")
    }

    @Test func bodiesAreChargedToTheClient() throws {
        let account = account()
        let first = try claim(try table.begin("k", request, for: account))
        first.keep(HTTPResponse(status: 200, body: [UInt8](repeating: 0x20, count: 100_000)), at: now)
        #expect(account.memory.used == IdempotencyTable.cost + 1 + 100_000)
        let second = try claim(try table.begin("l", request, for: account, at: now))
        second.keep(HTTPResponse(status: 200, body: [UInt8](repeating: 0x20, count: 100_000)), isCharged: true, at: now)
        #expect(account.memory.used == 2 * (IdempotencyTable.cost + 1) + 100_000)
        _ = try table.begin("m", request, for: account, at: now + .seconds(600))
        #expect(account.memory.used == 0)
    }

    @Test func aClientAboveItsLimitGetsNoKey() throws {
        let account = account {
            $0.memoryPerClient = 1 << 20
            $0.minimumMemory = 0
        }
        let first = try claim(try table.begin("k", request, for: account))
        first.keep(HTTPResponse(status: 200, body: [UInt8](repeating: 0x20, count: 2 << 20)), at: now)
        let problem = #expect(throws: Problem.self) { try table.begin("l", request, for: account, at: now) }
        #expect(problem?.status == 429 && problem?.type.hasSuffix(":too-much-memory") == true)
        #expect(account.used(.idempotencyKeys) == 1)
        #expect(name(try table.begin("k", request, for: account, at: now)) == "repeated 200")
    }

    private func accounts(keys: Int, perClient: Int) -> [ClientAccount] {
        var limits = Limits()
        (limits[.idempotencyKeys].total, limits[.idempotencyKeys].perClient) = (keys, perClient)
        let accounts = Accounts(limits, logger: Logger(label: "test"))
        return ["192.0.2.1", "192.0.2.2"].map { accounts.account(ofAddress: $0) }
    }

    @Test func aRefusalNamesTheTimeUntilAKeyBecomesFree() throws {
        func refusal(_ table: IdempotencyTable, _ client: ClientAccount, _ seconds: Int) -> String? {
            do {
                _ = try table.begin("new", request, for: client, at: now + .seconds(seconds))
                return nil
            } catch {
                let wait = error.headers.first { $0.name == "Retry-After" }?.value
                return "\(error.status) \(wait ?? "-") \(error.detail ?? "-")"
            }
        }
        let rest = "A key becomes free 10 minutes after the response."
        let clients = accounts(keys: 100, perClient: 2)
        let claims = try ["a", "b"].map { try claim(try table.begin($0, request, for: clients[0], at: now)) }
        #expect(refusal(table, clients[0], 0) == "429 600 You have used up your share of idempotency keys. \(rest)")
        for seconds in [10, 20] {
            try claim(try table.begin("\(seconds)", request, for: clients[1], at: now + .seconds(seconds)))
                .keep(HTTPResponse(status: 202), at: now + .seconds(seconds))
        }
        claims[1].keep(HTTPResponse(status: 202), at: now + .seconds(30))
        claims[0].keep(HTTPResponse(status: 202), at: now + .seconds(40))
        #expect(refusal(table, clients[0], 100) == "429 530 You have used up your share of idempotency keys. \(rest)")
        #expect(refusal(table, clients[1], 100) == "429 510 You have used up your share of idempotency keys. \(rest)")
        // The next key is then the oldest.
        try claim(try table.begin("l", request, for: clients[1], at: now + .seconds(615)))
            .keep(HTTPResponse(status: 202), at: now + .seconds(615))
        #expect(refusal(table, clients[1], 615) == "429 5 You have used up your share of idempotency keys. \(rest)")
    }

    @Test func refusalNamesExpiryOfOldestKeyOfAllClients() throws {
        let clients = accounts(keys: 1, perClient: 1)
        try claim(try table.begin("k", request, for: clients[0], at: now)).keep(HTTPResponse(status: 202), at: now)
        let problem = #expect(throws: Problem.self) {
            try table.begin("k", request, for: clients[1], at: now + .seconds(100))
        }
        #expect(problem?.status == 503 && problem?.headers.first?.value == "500")
    }

    @Test func keysAreSeparatePerClient() throws {
        let accounts = Accounts(Limits(), logger: Logger(label: "test"))
        let clients = ["192.0.2.1", "192.0.2.2"].map { accounts.account(ofAddress: $0) }
        let claims = try clients.map { try claim(try table.begin("k", request, for: $0)) }
        claims[0].keep(HTTPResponse(status: 202))
        #expect(name(try table.begin("k", request, for: clients[0])) == "repeated 202")
        #expect(name(try table.begin("k", request, for: clients[1])) == "in progress")
        #expect(name(try table.begin("k", RequestFingerprint([[]]), for: clients[0])) == "different")
    }

    @Test func fingerprintDependsOnPartBoundaries() {
        func fingerprint(_ parts: String...) -> RequestFingerprint { RequestFingerprint(parts.map { Array($0.utf8) }) }
        #expect(fingerprint("a", "b") == fingerprint("a", "b"))
        for other in [fingerprint("ab"), fingerprint("ab", ""), fingerprint("", "ab"), fingerprint("a", "b", "")] {
            #expect(other != fingerprint("a", "b"))
        }
    }
}
