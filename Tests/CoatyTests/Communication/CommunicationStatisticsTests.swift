import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

@Suite(.exclusive) struct CommunicationStatisticsTests {
    private func manager(_ binding: any Binding) throws -> CommunicationManager {
        try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions { _ in binding }
        )
    }

    private let object = CoatyObject(coreType: .CoatyObject, objectType: "t", objectId: .init(), name: "o")

    /// Writes queued operations, as a binding does.
    private func write(_ link: RecordedSession, _ limit: Int = .max) {
        var written = 0
        while written < limit, let operation = link.nextOperation() {
            if case .subscribe(_, let ticket) = operation { link.subscribed(ticket) }
            guard case .publish = operation else { continue }
            link.publicationSent()
            written += 1
        }
    }

    @Test func deferredPublicationsArePublishedWhenWritten() throws {
        let binding = RecordingBinding()
        let agent = try manager(binding)
        let made = agent.statistics
        #expect(made.state == .offline && made.since > 0)
        #expect([made.published, made.deferred, made.queued, made.queuedBytes, made.reconnects] == [0, 0, 0, 0, 0])
        agent.start()
        let link = try #require(binding.link)
        // An object of an application-defined object type is published twice.
        #expect(try agent.publishAdvertise(.with(object: object)) == .deferred)
        let deferred = agent.statistics
        #expect(deferred.deferred == 2 && deferred.queued == 2 && deferred.published == 0)
        #expect(deferred.queuedBytes == agent.queued.bytes && deferred.queuedBytes > 0)
        #expect(deferred.since == made.since)

        link.opened()
        // The Advertise event of the identity comes first and is written; then the connection is lost.
        write(link, 1)
        let online = agent.statistics
        #expect(online.state == .online && online.reconnects == 0 && online.since >= made.since)
        #expect(agent.statistics.published == 1 && agent.statistics.queued == 2)
        link.closed()
        #expect(agent.statistics.state == .offline && agent.statistics.queued == 2)
        link.opened()
        write(link)
        let again = agent.statistics
        #expect(again.reconnects == 1 && again.published == 4 && again.deferred == 2)
        #expect(again.queued == 0 && again.queuedBytes == 0)

        #expect(try agent.publishChannel(.with(object: object, channelId: "c")) == .sent)
        #expect(agent.statistics.deferred == 2 && agent.statistics.queued == 1)
        write(link)
        #expect(agent.statistics.published == 5)

        // A publication that can't be written leaves the queue, but does not count as published.
        try agent.publishChannel(.with(object: object, channelId: "c"))
        _ = try #require(link.nextOperation())
        link.publicationRefused()
        #expect(agent.statistics.published == 5 && agent.statistics.queued == 0)
    }

    @Test func droppedMessagesCountAsReceivedAndInvalid() throws {
        let binding = RecordingBinding()
        let agent = try manager(binding)
        let subscription = agent.subscribe(try .channel("c")) { (_: ChannelEvent) in }
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        let source = CoatyUUID()
        func receive(_ topic: String, _ payload: String) { link.received(topic: topic, payload: Array(payload.utf8)) }
        receive("coaty/3/-/CHN:c/\(source)", #"{"objects":[]}"#)
        receive("coaty/3/-/CHN:nobody/\(source)", "of no interest")
        receive("coaty/3/-/CHN:c/\(source)", "no JSON")
        receive("coaty/3/-/XYZ/\(source)", "{}")
        receive("some/other/topic", "")
        link.receivedTooLong()
        #expect(agent.statistics.received == 6 && agent.statistics.invalid == 3)
        subscription.cancel()
    }

    @Test func countsAreKeptAfterStop() async throws {
        let agent = try manager(TopicBinding(broker: TopicBroker()))
        agent.start()
        try await agent.untilOnline()
        try agent.publishChannel(.with(object: object, channelId: "c"))
        await agent.stop()
        // The identity, the event and the Deadvertise event.
        #expect(agent.statistics.state == .offline && agent.statistics.published == 3)
        agent.start()
        try await agent.untilOnline()
        #expect(agent.statistics.reconnects == 1)
        await agent.stop()
    }
}
