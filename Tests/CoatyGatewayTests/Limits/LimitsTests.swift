import Foundation
import TestSupport
import Testing

import Coaty
@testable import Base
@testable import CoatyGateway

@Suite(.exclusive) struct LimitsTests {
    @Test(arguments: Limits.bounds.map(\.name)) func eachBoundCanBeSet(_ name: String) throws {
        let bound = try #require(Limits.bounds.first { $0.name == name })
        // With the smallest value, no memory might be left for clients.
        let value = name == "maximum-memory" ? bound.range.lowerBound * 4 : bound.range.lowerBound
        let settings = try GatewaySettings(flags: [name: "\(value)"], environment: [:], file: nil)
        #expect(bound.value(settings.limits) == value)
        for wrong in ["", "x", "\(bound.range.lowerBound - 1)", "\(bound.range.upperBound + 1)"] {
            #expect(throws: InvalidConfiguration.self) {
                try GatewaySettings(flags: [name: wrong], environment: [:], file: nil)
            }
        }
    }

    @Test func namesAreUniqueAndFollowOneScheme() {
        let names = GatewaySettings.all.map(\.name)
        #expect(Set(names).count == names.count)
        for bound in Limits.bounds {
            let endings = ["-timeout", "-delay", "-spread", "-threads"]
            let isNamed =
                bound.name.hasPrefix("maximum-") || bound.name.hasPrefix("minimum-")
                || endings.contains(where: bound.name.hasSuffix)
            #expect(isNamed, "\(bound.name)")
            if let value = bound.value(Limits()) { #expect(bound.range.contains(value), "\(bound.name)") }
        }
    }

    @Test(arguments: [128, 256, 512, 4096]) func partsOfTheMemoryAddUp(_ mebibytes: Int) {
        var limits = Limits()
        limits.memory = mebibytes << 20
        let parts = [
            limits.registryMemory, limits.feedMemory, limits.inboundMemory, limits.replayBytes, limits[.outbox].total,
            limits[.keptObjects].total, limits.clientMemory,
        ]
        #expect(parts.reduce(0, +) == limits.accountedMemory)
        #expect(limits.accountedMemory <= limits.memory * 7 / 10)
        #expect(limits.clientMemory >= limits.minimumClientMemory)
        let quota = limits.memoryQuota
        #expect(2 * quota.perClient < quota.total - quota.reserve)
    }

    @Test func memoryThatLeavesNothingForClientsIsRefused() {
        for flags in [
            ["maximum-memory": "134217728", "maximum-outbox-bytes": "67108864"],
            ["maximum-replay-memory": "300000000"],
        ] {
            let error = #expect(throws: InvalidConfiguration.self) {
                try GatewaySettings(flags: flags, environment: [:], file: nil)
            }
            #expect(error?.description.contains("maximum-memory") == true)
        }
    }

    @Test func documentListsAllBounds() throws {
        try GeneratedTable(
            document: "docs/limits.md",
            section: "settings",
            head: ["setting", "default", "unit", "what", "at the bound"],
            rows: Limits.bounds.map { ["`\($0.name)`", $0.defaultText, $0.unit.rawValue, $0.help, $0.atTheBound] }
        ).check()
    }
}
