import Coaty
import TestSupport
import Testing

/// The examples of the chapter "Offline behavior and delivery".
@Suite(.exclusive, .timeLimit(.minutes(1))) struct OfflineBehaviorTests {
    @Test func theFullQueueRefusesNewPublications() throws {
        let limits = OutboxLimits(publications: 1)
        let communicationManager = try CommunicationManager(
            identity: Identity(),
            options: CommunicationOptions(outboxLimits: limits) { _ in InMemoryBinding(broker: InMemoryBroker()) }
        )
        let objectId = CoatyUUID()
        let delivery = try communicationManager.publishDeadvertise(.with(objectIds: objectId))
        #expect(delivery == .deferred)
        let queued = communicationManager.queued
        #expect(queued.publications == 1)
        #expect(throws: CommunicationError.queueFull(publications: 1, bytes: queued.bytes)) {
            try communicationManager.publishDeadvertise(.with(objectIds: objectId))
        }
        #expect(communicationManager.queued.publications == 1)
    }

    @Test func reportsTheStatusOfASubscription() async throws {
        let broker = InMemoryBroker()
        let communicationManager = try CommunicationManager(
            identity: Identity(),
            options: CommunicationOptions { _ in InMemoryBinding(broker: broker) }
        )
        let (statuses, reported) = AsyncStream.makeStream(of: SubscriptionStatus.self)
        let subscription = communicationManager.subscribe(
            .deadvertise,
            onStatus: { status in reported.yield(status) },
            onGap: { Issue.record("events may have been missed: \($0)") },
            handler: { event in print(event.data.objectIds) }
        )
        communicationManager.start()
        var seen = statuses.makeAsyncIterator()
        #expect(await seen.next() == .offline)
        #expect(await seen.next() == .standing)
        broker.setAvailable(false)
        #expect(await seen.next() == .offline)
        subscription.cancel()
        await communicationManager.stop()
    }
}
