import Foundation
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

    @Test func uuidsAreRecognizedAsByFoundation() {
        for position in 0..<36 {
            for character in ["-", "0", "9", "a", "f", "g", "A", "F", "G", " ", "é", ""] {
                var text = Array(UUID().uuidString).map(String.init)
                text[position] = character
                let joined = text.joined()
                #expect(CoatyUUID.isUUID(joined) == (UUID(uuidString: joined) != nil), "\(joined)")
            }
        }
        for text in ["", "-", UUID().uuidString + "0", " " + UUID().uuidString, UUID().uuidString.lowercased()] {
            #expect(CoatyUUID.isUUID(text) == (UUID(uuidString: text) != nil), "\(text)")
        }
    }
}
