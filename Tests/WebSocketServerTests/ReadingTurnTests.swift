import TestSupport
import Testing

@testable import WebSocketServer

@Suite(.exclusive) struct ReadingTurnTests {
    @Test func connectionsPauseWhenATurnIsOver() {
        var turn = ReadingTurn()
        let small = (0..<5000).map { _ in turn.isOver(afterReceiving: 10) }
        #expect(small.firstIndex(of: true) == 4096)
        #expect(small.last == true)
        turn.paused = [3, 5]
        let turns = [turn.begin(), turn.begin()]
        #expect(turns == [[3, 5], []])
        let isOver = turn.isOver(afterReceiving: 10)
        #expect(!isOver)
    }

    @Test func bytesCountToo() {
        var turn = ReadingTurn()
        let large = (0..<1000).map { _ in turn.isOver(afterReceiving: 4096) }
        #expect(large.firstIndex(of: true) == 819)
    }
}
