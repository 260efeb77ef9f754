import TestSupport
import Testing

@testable import Access
@testable import Base

@Suite(.exclusive) struct FailedAttemptsTests {
    private static let limit = 10
    private static let maximumAddresses = 1000
    private static let start = ContinuousClock.now
    private var attempts = FailedAttempts(limit: limit, maximumAddresses: maximumAddresses)

    private mutating func attempt(from address: String = "192.0.2.1", at seconds: Double = 0) -> Int? {
        attempts.retryAfter(failureFrom: address, at: Self.start + .seconds(seconds))
    }

    private mutating func failUntilRefused(from address: String = "192.0.2.1", at seconds: Double = 0) {
        for _ in 0..<Self.limit { #expect(attempt(from: address, at: seconds) == nil) }
    }

    @Test mutating func refusesUntilTheMinuteIsOver() {
        for second in 0..<Self.limit { #expect(attempt(at: Double(second)) == nil) }
        #expect(attempt(at: 9) == 51)
        #expect(attempt(at: 9.5) == 51)
        #expect(attempt(at: 59.999) == 1)
        // Refused attempts do not count as failures.
        failUntilRefused(at: 60)
        #expect(attempt(at: 60) == 60)
    }

    @Test mutating func failuresOfAnEarlierMinuteDoNotCount() {
        for second in 0..<100 { #expect(attempt(at: 7 * Double(second)) == nil) }
    }

    @Test mutating func keyWaitsPerAddressAreLimited() {
        // After a key rotation, all clients behind a proxy may wait for the new keys.
        for _ in 0..<100 { #expect(mayWait(for: "a", fetched: 0, at: 1) == true) }
        for id in ["b", nil, "d"] { #expect(mayWait(for: id, fetched: 0, at: 2) == true) }
        #expect(mayWait(for: "e", fetched: 0, at: 2) == false)
        #expect(mayWait(for: "a", fetched: 0, at: 3) == true)
        // The keys have been fetched since, and do not include this one.
        #expect(mayWait(for: "a", fetched: 10, at: 12) == false)
        #expect(mayWait(for: "b", fetched: 10, from: "192.0.2.2", at: 12) == true)
        #expect(mayWait(for: "c", fetched: 10, at: 60) == false)
        #expect(mayWait(for: "c", fetched: 10, at: 61) == true)
    }

    private mutating func mayWait(
        for id: String?,
        fetched: Double,
        from address: String = "192.0.2.1",
        at seconds: Double
    ) -> Bool {
        attempts.mayWait(
            for: id,
            since: Self.start + .seconds(fetched),
            from: address,
            at: Self.start + .seconds(seconds)
        )
    }

    @Test mutating func addressesAreCountedSeparately() {
        failUntilRefused()
        #expect(attempt() != nil)
        failUntilRefused(from: "192.0.2.2")
        failUntilRefused(from: "")
        #expect(attempt(from: "") != nil)
    }

    @Test mutating func addressesOfOneIPv6NetworkAreCountedTogether() {
        for host in 0..<Self.limit { #expect(attempt(from: "2001:db8:0:1::\(host)") == nil) }
        #expect(attempt(from: "2001:db8:0:1:ffff::1") != nil)
        #expect(attempt(from: "2001:db8:0:2::1") == nil)
    }

    @Test mutating func oldestAddressIsForgottenBeyondTheMaximum() {
        failUntilRefused()
        for number in 0..<Self.maximumAddresses - 1 {
            #expect(attempt(from: "10.0.\(number / 256).\(number % 256)", at: 1) == nil)
        }
        #expect(attempt(at: 2) != nil)
        #expect(attempt(from: "192.0.2.2", at: 2) == nil)
        #expect(attempt(at: 2) == nil)
    }
}

@Suite(.exclusive) struct ExpiringTableTests {
    /// For random operations, the table behaves like a list of its entries.
    @Test func tableEqualsModel() {
        let start = ContinuousClock.now
        let (lifetime, capacity) = (5, 4)
        var generator = SeededGenerator(seed: 14)
        for _ in 0..<200 {
            var table = ExpiringTable<Int, Int>(lifetime: .seconds(lifetime), capacity: capacity)
            var model: [(key: Int, value: Int, expires: Int)] = []
            var time = 0
            for step in 0..<200 {
                time += Int.random(in: 0...1, using: &generator)
                let now = start + .seconds(time)
                let key = Int.random(in: 0..<7, using: &generator)
                model.removeAll { $0.expires <= time }
                if Bool.random(using: &generator) {
                    table.insert(key, step, at: now)
                    model.removeAll { $0.key == key }
                    if model.count == capacity { model.removeFirst() }
                    model.append((key, step, time + lifetime))
                } else if let index = model.firstIndex(where: { $0.key == key }) {
                    table.update(key, step)
                    model[index].value = step
                }
                for key in 0..<7 {
                    let expected = model.first { $0.key == key }
                    let entry = table.entry(key, at: now)
                    #expect(entry?.value == expected?.value)
                    #expect(entry?.expires == expected.map { start + .seconds($0.expires) })
                }
                #expect(table.count <= capacity)
            }
        }
    }
}
