import TestSupport
import Testing

@testable import Base

@Suite(.exclusive) struct NearestNameTests {
    private static let known = ["coreType", "filter", "limit", "objectType", "offset", "order", "timeout"]

    @Test(arguments: [
        ("filer", "filter"), ("Filter", "filter"), ("tiemout", "timeout"), ("timeoutMs", "timeout"),
        ("core_type", "coreType"), ("objecttypes", "objectType"), ("limt", "limit"), ("ofset", "offset"),
        ("odrer", "order"),
    ])
    func findsTheIntendedName(_ name: String, _ meant: String) {
        #expect(NearestName.of(name, among: Self.known) == meant)
    }

    @Test(arguments: ["", "x", "of", "colour", "where", "timestamp", "tim", String(repeating: "filter", count: 100)])
    func findsNothingIfNoNameIsClose(_ name: String) {
        #expect(NearestName.of(name, among: Self.known) == nil)
    }

    @Test func theFirstOfEquallyCloseNamesIsTaken() {
        #expect(NearestName.of("bat", among: ["cat", "hat"]) == "cat")
        #expect(NearestName.of("op", among: ["id"]) == nil)
        #expect(NearestName.of("any", among: []) == nil)
    }
}
