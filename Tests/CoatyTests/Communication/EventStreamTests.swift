import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Streams of events: their bounds, and the reason of their end.
@Suite(.exclusive) struct EventStreamTests {
    private func agent(_ broker: TopicBroker = TopicBroker()) throws -> CommunicationManager {
        try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions { _ in TopicBinding(broker: broker) }
        )
    }

    @Test func slowReadersGetTheLatestEventsAndTheNumberOfDroppedOnes() async throws {
        let (stream, continuation) = EventStream.makeStream(of: Int.self) { _ in 1 }
        let excess = 10
        for number in 0..<CommunicationManager.streamBuffer + excess { continuation.yield(number) }
        continuation.finish(.stopped)
        var read: [Int] = []
        for await number in stream { read.append(number) }
        #expect(read == Array(excess..<CommunicationManager.streamBuffer + excess))
        #expect(stream.dropped == excess && stream.end == .stopped)
    }

    @Test func streamsAreBoundedInBytes() async throws {
        let (stream, continuation) = EventStream.makeStream(of: Int.self) { $0 }
        let third = CommunicationManager.streamBufferBytes / 3
        for size in [third + 1, third + 2, third + 3] { continuation.yield(size) }
        #expect(stream.dropped == 1)
        #expect(continuation.yield(CommunicationManager.streamBufferBytes + 1) == 3, "the latest event is kept")
        continuation.finish(.timeLimit)
        #expect(continuation.yield(1) == nil, "the stream has ended")
        var read: [Int] = []
        for await size in stream { read.append(size) }
        #expect(read == [CommunicationManager.streamBufferBytes + 1])
        #expect(stream.end == .timeLimit)
    }

    /// Large events, of which far fewer than the maximum number fit.
    @Test func unreadLargeEventsAreDropped() async throws {
        let broker = TopicBroker()
        let agent = try agent(broker)
        agent.start()
        try await agent.untilOnline()
        let events = try agent.observeChannel(channelId: "c")
        let object = CoatyObject(coreType: .CoatyObject, objectType: "t", objectId: .init(), name: "")
        object.name = String(repeating: "x", count: 1 << 20)
        let event = try ChannelEvent.with(object: object, channelId: "c")
        for _ in 0..<20 {
            // The queue for the broker has fewer bytes.
            try await withPatience { while (try? agent.publishChannel(event)) == nil { await Task.yield() } }
        }
        try await withPatience { while events.dropped < 4 { await Task.yield() } }
        await agent.stop()
        var count = 0
        for await _ in events { count += 1 }
        #expect(count < 16 && count + events.dropped == 20)
        #expect(events.end == .stopped)
    }

    @Test func endsHaveTheirReason() async throws {
        let agent = try agent()
        agent.start()
        try await agent.untilOnline()
        let observed = agent.observeDiscover()
        let limited = try agent.publishQuery(.with(coreTypes: [.Task]), timeLimit: .milliseconds(5))
        try await withPatience { for await _ in limited {} }
        #expect(limited.end == .timeLimit)
        let cancelled = agent.observeQuery()
        let reader = Task { for await _ in cancelled {} }
        reader.cancel()
        await reader.value
        #expect(cancelled.end == .cancelled)
        #expect(observed.end == nil)
        await agent.stop()
        try await withPatience { for await _ in observed {} }
        #expect(observed.end == .stopped)
    }

    @Test func refusedAnswersEndTheStream() async throws {
        let binding = RecordingBinding()
        let agent = try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions { _ in binding }
        )
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        link.settle()
        let answers = try agent.publishDiscover(.with(coreTypes: [.Task]))
        for (filters, ticket) in link.takeSubscriptions() { link.subscribed(ticket, refused: filters) }
        try await withPatience { for await _ in answers {} }
        #expect(answers.end == .refused)
        await agent.stop()
    }

    @Test func actionsAreCalledAfterTheEndEvenIfAddedLater() throws {
        let (stream, continuation) = EventStream.makeStream(of: Int.self) { $0 }
        continuation.finish(.stopped)
        let calls = Recorder<Bool>()
        continuation.onEnd { calls.append(true) }
        #expect(calls.values.count == 1)
        withExtendedLifetime(stream) {}
    }
}
