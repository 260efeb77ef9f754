import Testing

@testable import Coaty

@Suite struct CoatyUUIDTests {
    @Test func idsAreComparedByBytes() {
        let (composed, decomposed) = (CoatyUUID(wire: "caf\u{E9}"), CoatyUUID(wire: "cafe\u{301}"))
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed, CoatyUUID(wire: "caf\u{E9}"), CoatyUUID(wire: "")]).count == 3)
        let id = CoatyUUID()
        #expect(id == CoatyUUID(wire: String(decoding: Array(id.string.utf8), as: UTF8.self)))
    }
}
