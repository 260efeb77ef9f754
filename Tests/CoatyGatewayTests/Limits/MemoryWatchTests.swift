import Logging
import TestSupport
import Testing

@testable import Base

@Suite(.exclusive) struct MemoryWatchTests {
    private let start = ContinuousClock.now
    private var watch: MemoryWatch
    private let limits = Limits()

    init() { watch = MemoryWatch(limits) }

    private mutating func actions(_ resident: Int, charged: Int, for seconds: Int) -> [MemoryWatch.Action] {
        (0..<seconds * 4).map {
            watch.action(resident: resident, charged: charged, at: start + .milliseconds(250 * $0))
        }
    }

    @Test mutating func nothingIsDoneBelowTheFirstLevel() {
        let actions = actions(limits.memory / 100 * 85, charged: limits.clientMemory, for: 2)
        #expect(actions.allSatisfy { $0 == .nothing })
    }

    @Test mutating func memoryIsReturnedOncePerSecond() {
        let actions = actions(limits.memory / 10 * 9, charged: limits.clientMemory, for: 2)
        #expect(actions == [.trim, .nothing, .nothing, .nothing, .trim, .nothing, .nothing, .nothing])
    }

    @Test mutating func oneConnectionIsClosedPerSecondAfterMemoryWasReturned() {
        let actions = actions(limits.memory, charged: limits.clientMemory, for: 2)
        #expect(actions == [.trim, .close, .nothing, .nothing, .trim, .close, .nothing, .nothing])
    }

    @Test mutating func noConnectionIsClosedIfClientsHoldLittle() {
        let actions = actions(limits.memory, charged: limits.clientMemory / 3, for: 1)
        #expect(actions == [.trim, .report, .nothing, .nothing])
    }

    @Test func residentMemoryIsRead() throws {
        let before = try #require(ResidentMemory.resident())
        #expect(before > 1 << 20)
        let block = [UInt8](repeating: 1, count: 64 << 20)
        let after = try #require(ResidentMemory.resident())
        #expect(after - before > 32 << 20)
        withExtendedLifetime(block) {}
    }
}
