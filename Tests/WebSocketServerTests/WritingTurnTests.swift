import TestSupport
import Testing

@testable import WebSocketServer

@Suite(.exclusive) struct WritingTurnTests {
    @Test func aTurnIsOverAfterAMebibyte() {
        var turn = WritingTurn(share: 256 * 1024)
        turn.add(1024 * 1024 - 1)
        #expect(!turn.isOver)
        turn.add(1)
        #expect(turn.isOver)
        _ = turn.begin()
        #expect(!turn.isOver)
    }

    @Test func aFewConnectionsOfTheLineSendInEachTurn() {
        var turn = WritingTurn(share: 256 * 1024)
        for id in 0..<6 { turn.wait(UInt64(id)) }
        #expect(turn.hasLine)
        let turns = [turn.begin(), turn.begin(), turn.begin()]
        #expect(turns == [[0, 1, 2, 3], [4, 5], []])
        #expect(!turn.hasLine)
    }
}
