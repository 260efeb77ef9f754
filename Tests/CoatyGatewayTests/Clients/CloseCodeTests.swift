import TestSupport
import Testing

@testable import Edge
@testable import Feeds

@Suite(.exclusive) struct CloseCodeTests {
    @Test(
        arguments: [
            (ConnectionEnd.done(.overflow), 4001), (.done(.withdrawn), 4500), (.refused(status: 403), 4501),
            (.refused(status: 404), 4500), (.refused(status: 503), 1013), (.expired, 4002),
            (.refused(status: 401), 4503),
        ] as [(ConnectionEnd, UInt16)]
    )
    func endOfASingleStreamHasItsCode(end: ConnectionEnd, code: UInt16) {
        #expect(CloseCode(end).rawValue == code)
    }
}
