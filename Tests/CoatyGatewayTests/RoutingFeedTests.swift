import Coaty
import Testing

@testable import CoatyGateway

@Suite struct RoutingFeedTests {
    private static func associations(_ count: Int) -> [IoAssociation] {
        (0..<count).map { _ in
            IoAssociation(ioSourceId: CoatyUUID(), ioActorId: CoatyUUID(), updateRate: Int(Int32.max))
        }
    }

    @Test func watchingBeginsOnlyWithWhatAQueueHolds() {
        let (feed, id) = (RoutingFeed(), CoatyUUID())
        var changes = IoAssociationChanges()
        changes.added = Self.associations(RoutingFeed.maximumAssociations)
        #expect(EventFrame.texts(changes, context: id).reduce(0) { $0 + $1.count } < 1 << 20)
        feed.tell(id, changes)
        #expect(feed.hasRoom(for: id))
        var one = IoAssociationChanges()
        one.added = Self.associations(1)
        feed.tell(id, one)
        #expect(!feed.hasRoom(for: id) && feed.hasRoom(for: CoatyUUID()))
        (one.removed, one.added) = (one.added, [])
        feed.tell(id, one)
        #expect(feed.hasRoom(for: id))
    }
}
