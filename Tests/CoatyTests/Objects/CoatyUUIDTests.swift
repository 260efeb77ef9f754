import Foundation
import TestSupport
import Testing

@testable import Coaty

@Suite(.exclusive) struct CoatyUUIDTests {
    @Test func idsAreComparedByBytes() {
        let (composed, decomposed) = (CoatyUUID(wire: "caf\u{E9}"), CoatyUUID(wire: "cafe\u{301}"))
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed, CoatyUUID(wire: "caf\u{E9}"), CoatyUUID(wire: "")]).count == 3)
        let id = CoatyUUID()
        #expect(id == CoatyUUID(wire: String(decoding: Array(id.string.utf8), as: UTF8.self)))
    }

    @Test func onlyWellFormedUUIDsAreRecognized() {
        let form = /[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}/
        for position in 0..<36 {
            for character in ["-", "0", "9", "a", "f", "g", "A", "F", "G", " ", "/", ":", "@", "`", "é", ""] {
                var characters = UUID().uuidString.map(String.init)
                characters[position] = character
                let text = characters.joined()
                #expect(CoatyUUID.isUUID(text) == (text.wholeMatch(of: form) != nil), "\(text)")
            }
        }
        let id = UUID().uuidString
        #expect(CoatyUUID.isUUID(id) && CoatyUUID.isUUID(id.lowercased()))
        for text in ["", "-", id + "0", " " + id] { #expect(!CoatyUUID.isUUID(text), "\(text)") }
    }
}
