import Coaty
import TestSupport
import Testing

@testable import Cluster

@Suite(.exclusive) struct PeerRecordsTests {
    private struct Record: TakenOver {
        let takeovers: Int
    }

    private static let gateways = [CoatyUUID(wire: "a"), CoatyUUID(wire: "b")]

    /// Of two gateways with the same thing, one gives it up, whichever record arrives first.
    @Test(arguments: [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (2, 2)])
    func oneOfTwoGatewaysKeepsAThing(takeovers: (Int, Int)) throws {
        let thing = CoatyUUID()
        let counts = [takeovers.0, takeovers.1]
        var records = [PeerRecords<Record>(), PeerRecords<Record>()]
        for number in 0...1 { _ = records[number].set(thing, Record(takeovers: counts[number])) }
        let pieces = records.indices.map { records[$0].takeChanges() }
        for number in 0...1 {
            let document = try JSONDocument(try #require(pieces[1 - number].first))
            records[number].receive(document.root, replacesAll: false, from: Self.gateways[1 - number])
            #expect(records[number].takeovers(of: thing) == counts.max())
        }
        let isTaken = (0...1).map { number in
            records[number].isTaken(thing, by: Self.gateways[1 - number], from: Self.gateways[number])
        }
        // Without a takeover, ids are chosen by chance, so that there is only one.
        let isLower = counts[0] < counts[1]
        #expect(isTaken == (counts == [0, 0] ? [false, false] : [isLower, !isLower]))
        let taken = records[1].taken(by: Self.gateways[0], from: Self.gateways[1])
        #expect(taken == (isTaken[1] ? [thing] : []))
        _ = records[1].set(thing, nil)
        #expect(!records[1].isTaken(thing, by: Self.gateways[0], from: Self.gateways[1]))
    }
}
