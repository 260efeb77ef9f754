import Coaty
import Testing
import TestSupport

@testable import Network

@Suite(.exclusive) struct RoutingFeedTests {
    private static func associations(_ count: Int) -> [IoAssociation] {
        (0..<count).map { _ in
            IoAssociation(ioSourceId: CoatyUUID(), ioActorId: CoatyUUID(), updateRate: Int(Int32.max))
        }
    }

    @Test func manyChangesAreSplitIntoSeveralPieces() throws {
        var changes = IoAssociationChanges()
        changes.added = Self.associations(2 * RoutingFeed.associationsPerPiece + 1)
        changes.removed = Self.associations(1)
        let pieces = RoutingFeed.pieces(changes).map { $0.json["associations"] }
        #expect(pieces.map { $0?["added"].map { Array($0.elements).count } } == [1000, 1000, 1])
        #expect(pieces.map { $0?["removed"].map { Array($0.elements).count } } == [1, 0, 0])
        #expect(RoutingFeed.pieces(IoAssociationChanges()).count == 1)
    }
}
