import Coaty
import Logging
import ProblemDetails
import TestSupport
import Testing

@testable import Access
@testable import Base

@Suite(.exclusive) struct RateTests {
    private static let second: Int64 = 1_000_000_000

    // MARK: - Text

    @Test(arguments: [
        ("100/s", Rate.Kind.requests, 100.0, 100), ("100/s burst 500", .requests, 100, 500),
        ("30/min", .publications, 0.5, 1), ("90/min", .publications, 1.5, 1), ("1/h", .subscriptions, 1.0 / 3600, 1),
        ("1MB/s", .bytesIn, 1e6, 1_000_000), ("500kB/s burst 2MB", .bytesIn, 5e5, 2_000_000),
        ("7B/s", .bytesIn, 7, 7), ("2kB/s burst 3kB", .bytesOut, 2000, 3000),
        ("1000000000000/s", .requests, 1e12, 1_000_000_000_000),
    ])
    func textIsRead(_ text: String, _ kind: Rate.Kind, _ perSecond: Double, _ burst: Int) throws {
        #expect(try Rate(text, of: kind) == Rate(perSecond: perSecond, burst: burst))
    }

    @Test(arguments: [
        "", "100", "/s", "0/s", "-1/s", "+1/s", "1.5/s", "1/d", "1/s burst", "1/s burst 0", "1/s  burst 5",
        "1/s burst 5 ",
        "1/s/s", "1/s bursts 5", "1kB/s", "1B/s", "٣/s", "99999999999999999999/s", "1000000000001/s", "1/h burst 25",
    ])
    func otherTextIsRefused(_ text: String) {
        #expect(throws: Rate.Malformed.self) { try Rate(text, of: .requests) }
    }

    @Test func bytesNeedAUnit() {
        #expect(throws: Rate.Malformed.self) { try Rate("100/s", of: .bytesIn) }
        #expect(throws: Rate.Malformed.self) { try Rate("100/s", of: .bytesOut) }
        #expect(throws: Rate.Malformed.self) { try Rate("1001GB/s", of: .bytesIn) }
    }

    // MARK: - Buckets

    /// A copyable wrapper, because macros can't handle noncopyable values.
    private final class Levels: Sendable {
        private let levels = RateLevels()

        func take(_ kind: Rate.Kind, _ amount: Int, at rate: Rate, _ now: Int64) -> Int64? {
            levels.take(kind, amount, at: rate, now)
        }

        func spend(_ kind: Rate.Kind, _ amount: Int, at rate: Rate, _ now: Int64) {
            levels.spend(kind, amount, at: rate, now)
        }

        func isIdle(at now: Int64) -> Bool { levels.isIdle(at: now) }
    }

    @Test func burstIsAvailableAtOnceThenRefills() {
        let levels = Levels()
        let rate = Rate(perSecond: 10, burst: 3)
        for _ in 0..<3 { #expect(levels.take(.requests, 1, at: rate, 0) == nil) }
        #expect(levels.take(.requests, 1, at: rate, 0) == Self.second / 10)
        // A refused request is not charged.
        #expect(levels.take(.requests, 1, at: rate, Self.second / 10 - 1) == 1)
        #expect(levels.take(.requests, 1, at: rate, Self.second / 10) == nil)
        #expect(levels.take(.requests, 1, at: rate, Self.second / 10) == Self.second / 10)
        // Each kind has a separate bucket.
        #expect(levels.take(.subscriptions, 1, at: rate, 0) == nil)
        #expect(!levels.isIdle(at: Self.second / 10))
        // A pause refills the bucket up to the burst at most.
        #expect(levels.isIdle(at: 100 * Self.second))
        for _ in 0..<3 { #expect(levels.take(.requests, 1, at: rate, 100 * Self.second) == nil) }
        #expect(levels.take(.requests, 1, at: rate, 100 * Self.second) != nil)
    }

    @Test func oddRatesAllowTheWholeBurst() {
        for perSecond in [3.0, 7, 0.3, 1.0 / 3600, 999_999_937] {
            let levels = Levels()
            let rate = Rate(perSecond: perSecond, burst: 100)
            let taken = (0..<200).prefix { _ in levels.take(.requests, 1, at: rate, 0) == nil }.count
            #expect((100...101).contains(taken), "\(perSecond)")
        }
    }

    @Test func bytesMayExceedTheBurstAsDebt() {
        let levels = Levels()
        let rate = Rate(perSecond: 1000, burst: 1000)
        levels.spend(.bytesIn, 3000, at: rate, 0)
        #expect(levels.take(.bytesIn, 0, at: rate, 0) == 2 * Self.second)
        #expect(levels.take(.bytesIn, 0, at: rate, 2 * Self.second) == nil)
        levels.spend(.bytesIn, 1_000_000_000, at: rate, 2 * Self.second)
        #expect(levels.take(.bytesIn, 0, at: rate, 2 * Self.second) == RateLevels.maximumDebt)
        // Kinds other than bytes have no debt.
        for _ in 0..<5000 { levels.spend(.requests, 1, at: rate, 0) }
        #expect(levels.take(.requests, 1, at: rate, 0) == Self.second / 1000)
    }

    @Test func debtIsBoundedAtTheLowestRate() throws {
        let levels = Levels()
        let rate = try Rate("1B/h", of: .bytesOut)
        for amount in [3_000_000, 1 << 40, .max] {
            for _ in 0..<10 { levels.spend(.bytesOut, amount, at: rate, Self.second) }
            #expect(levels.take(.bytesOut, 0, at: rate, Self.second) == RateLevels.maximumDebt)
            #expect(levels.take(.bytesOut, amount, at: rate, Self.second) != nil)
        }
    }

    @Test func requestsWaitOnlyForADebtOfMoreThanASecond() throws {
        let account = ClientAccount.single()
        let rate = Rate(perSecond: 1000, burst: 5000)
        account.spend(.bytesOut, 6000, at: rate, 0)
        try account.checkDebt(.bytesOut, at: rate, 0)
        account.spend(.bytesOut, 1500, at: rate, 0)
        let problem = #expect(throws: Problem.self) { try account.checkDebt(.bytesOut, at: rate, 0) }
        #expect(problem?.status == 429 && problem?.headers.contains { $0 == ("Retry-After", "2") } == true)
        try account.checkDebt(.bytesOut, at: rate, 3 * Self.second / 2)
        // Streams wait until the debt is paid.
        #expect(account.wait(.bytesOut, at: rate, 3 * Self.second / 2) == Self.second)
    }

    @Test func aLargerRateAppliesAtOnce() {
        let levels = Levels()
        let (slow, fast) = (Rate(perSecond: 1, burst: 500), Rate(perSecond: 100, burst: 100))
        for _ in 0..<500 { _ = levels.take(.requests, 1, at: slow, 0) }
        #expect(levels.take(.requests, 1, at: slow, 0) == Self.second)
        #expect(levels.take(.requests, 1, at: fast, 0) == Self.second / 100)
        #expect(levels.take(.requests, 1, at: fast, Self.second / 100) == nil)
    }

    // MARK: - Principals

    private func policy(_ limits: String) throws -> Policy {
        let digests = ["a", "b"].map { String(repeating: $0, count: 64) }
        let json = """
            {"tokens":[{"name":"both","sha256":"\(digests[0])","roles":["slow","fast"]},
             {"name":"slow","sha256":"\(digests[1])","roles":["slow"]}],"anonymous":["slow"],
             "roles":{"slow":[{"read":["info"]}],"fast":[{"read":["status"]}]},"limits":\(limits)}
            """
        return Policy(try AccessConfiguration(json: json), dialect: .plain)
    }

    private func rates(_ subject: Principal.Subject, _ policy: Policy) -> Rates? {
        Principal(subject, address: "192.0.2.1", under: policy).rates(under: policy)
    }

    @Test func largestRateOfAllRolesApplies() throws {
        let limits = """
            {"roles":{"slow":{"requests":"1/s","publications":"1/s burst 9"},
             "fast":{"requests":"5/s","publications":"1/s burst 10","subscriptions":"2/s"}}}
            """
        let policy = try policy(limits)
        let both = try #require(rates(.token("both"), policy))
        #expect(both[.requests] == Rate(perSecond: 5, burst: 5))
        #expect(both[.publications] == Rate(perSecond: 1, burst: 10))
        #expect(both[.subscriptions] == Rate(perSecond: 2, burst: 2))
        #expect(both[.bytesIn] == nil)
        #expect(rates(.token("slow"), policy)?[.requests]?.perSecond == 1)
        // If no rates are configured for clients without a token, the rates of their roles apply.
        #expect(rates(.anonymous, policy)?[.requests]?.perSecond == 1)
        #expect(rates(.token("slow"), .open) == nil)
    }

    @Test func anonymousClientsHaveTheirOwnRates() throws {
        let policy = try policy(#"{"anonymous":{"requests":"2/min"},"roles":{"slow":{"publications":"1/s"}}}"#)
        let own = try #require(self.rates(.anonymous, policy))
        #expect(own[.requests] == Rate(perSecond: 2.0 / 60, burst: 1) && own[.publications] == nil)
    }

    @Test func principalAdoptsReloadedRates() throws {
        let (old, new) = (
            try policy(#"{"roles":{"slow":{"requests":"1/s"}}}"#), try policy(#"{"roles":{"slow":{"requests":"9/s"}}}"#)
        )
        let principal = Principal(.token("slow"), address: "192.0.2.1", under: old)
        #expect(principal.rates(under: old)?[.requests]?.perSecond == 1)
        #expect(principal.rates(under: new)?[.requests]?.perSecond == 9)
    }

    @Test func addressesHaveSeparateBuckets() throws {
        let policy = try policy(#"{"anonymous":{"requests":"1/h"}}"#)
        let accounts = Accounts(Limits(), logger: Logger(label: "test"))
        let clients = ["192.0.2.1", "192.0.2.2"].map { Principal(.anonymous, address: $0, under: policy) }
        for client in clients { try accounts.take(.requests, of: client, under: policy) }
        for client in clients {
            let problem = #expect(throws: Problem.self) { try accounts.take(.requests, of: client, under: policy) }
            #expect(problem?.status == 429 && problem?.type.hasSuffix(":rate-limited") == true)
            let fields = problem.map { Dictionary($0.headers.map { ($0.name, $0.value) }) { $1 } } ?? [:]
            #expect(fields["RateLimit-Policy"] == #""requests";q=1;w=3600"#)
            #expect(fields["Retry-After"] == "3600" && fields["RateLimit"] == #""requests";r=0;t=3600"#)
        }
        #expect(accounts.refusals.all.map { "\($0.key.kind) \($0.value)" } == ["rate of requests 2"])
        // The account of a client whose bucket is not full is kept.
        for network in 0..<1000 { _ = accounts.account(ofAddress: "10.0.\(network / 250).\(network % 250)") }
        #expect(throws: Problem.self) { try accounts.take(.requests, of: clients[0], under: policy) }
        // A client with a token is not affected.
        let token = Principal(.token("slow"), address: "192.0.2.1", under: policy)
        for _ in 0..<5 { try accounts.take(.requests, of: token, under: policy) }
    }

    // MARK: - Configuration

    @Test(arguments: [
        ("[]", "", "must be an object"), (#"{"role":{}}"#, "/role", "unknown"), (#"{"roles":[]}"#, "/roles", "object"),
        (#"{"roles":{"none":{}}}"#, "/roles/none", "define none in roles"),
        (#"{"roles":{"r":{"bytes":"1MB/s"}}}"#, "/roles/r/bytes", "unknown"),
        (#"{"roles":{"r":{"requests":100}}}"#, "/roles/r/requests", "100/s"),
        (#"{"roles":{"r":{"requests":"100"}}}"#, "/roles/r/requests", "100/s"),
        (#"{"roles":{"r":{"bytes-in":"100/s"}}}"#, "/roles/r/bytes-in", "1MB/s"),
        (#"{"roles":{"r":{"requests":"1/h burst 25"}}}"#, "/roles/r/requests", "a day"),
        (#"{"address":{"publications":"1/s"}}"#, "/address/publications", "unknown"),
        (#"{"address":{"requests":"1"}}"#, "/address/requests", "100/s"),
        (#"{"anonymous":{"requests":"1/s","requests":"2/s"}}"#, "/anonymous/requests", "twice"),
    ])
    func errorsNameTheirLocation(_ limits: String, _ pointer: String, _ reason: String) {
        let json = #"{"anonymous":["r"],"roles":{"r":[{"read":["info"]}]},"limits":\#(limits)}"#
        let error = #expect(throws: PayloadError.self) { try AccessConfiguration(json: json) }
        guard case .invalid(let found, let text)? = error else { return #expect(Bool(false), "\(limits)") }
        #expect(found == "/limits" + pointer && text.contains(reason), "\(found): \(text)")
    }

    @Test func adminCanBeLimited() throws {
        let json = #"{"anonymous":["admin"],"limits":{"roles":{"admin":{"requests":"1/s"}}}}"#
        let policy = Policy(try AccessConfiguration(json: json), dialect: .plain)
        #expect(rates(.anonymous, policy)?[.requests] == Rate(perSecond: 1, burst: 1))
    }
}
