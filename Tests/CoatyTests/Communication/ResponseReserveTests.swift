import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Correlation ids that are subscribed before a request uses them.
@Suite(.exclusive) struct ResponseReserveTests {
    /// An agent on a link that the test controls.
    private final class Scene {
        let agent: CommunicationManager
        let link: RecordedSession

        init() throws {
            let binding = RecordingBinding()
            agent = try CommunicationManager(
                identity: Identity(name: "Agent"),
                options: CommunicationOptions { _ in binding }
            )
            agent.start()
            link = try #require(binding.link)
            link.opened()
            link.settle()
        }

        /// Publishes a Discover, and grants all subscriptions.
        ///
        /// - Returns: the request, and the filters of each packet, nil for the publication.
        func ask(
            refused: Bool = false,
            onEnd: @escaping @Sendable () -> Void = {},
            handler: @escaping @Sendable (ResolveEvent) -> Void = { _ in }
        ) throws -> (request: PendingRequest, packets: [[String]?], topic: String) {
            let event = try DiscoverEvent.with(objectId: agent.identityId)
            let request = try agent.publish(event, onEnd: onEnd, handler: handler)
            var packets: [[String]?] = []
            var topic = ""
            while let operation = link.nextOperation() {
                switch operation {
                case .subscribe(let filters, let ticket):
                    packets.append(filters)
                    link.subscribed(ticket, refused: refused ? filters : [])
                case .publish(let message):
                    packets.append(nil)
                    topic = message.topic
                    link.publicationSent()
                case .unsubscribe, .disconnect: break
                }
            }
            return (request, packets, topic)
        }
    }

    @Test func growsWithRequestsAndUsesEachIdOnce() throws {
        let scene = try Scene()
        let asked = try (0..<200).map { _ in try scene.ask() }
        let counts = asked.map { $0.packets.map { $0?.count ?? 0 } }
        #expect(counts[0] == [1, 0], "the first request subscribes as if there were no reserve")
        #expect(counts[1] == [1, 0, 1], "the reserve starts with the second one")
        #expect(counts[2] == [0, 1], "its id was subscribed ahead")
        #expect(counts.dropFirst(2).allSatisfy { $0[0] == 0 }, "no other request subscribes")
        #expect(counts.joined().allSatisfy { $0 <= ResponseReserve.maximumSize })
        let subscribed = asked.flatMap(\.packets).compactMap(\.self).joined()
        #expect(Set(subscribed).count == subscribed.count)
        let ids = asked.map { String($0.topic.split(separator: "/").last ?? "") }
        #expect(Set(ids).count == ids.count)
        #expect(ids.allSatisfy { id in subscribed.contains { $0.hasSuffix(id) } })
    }

    @Test func growsWithConcurrentRequests() throws {
        var reserve = ResponseReserve()
        var sizes: [Int] = []
        for _ in 0..<10 {
            let id = reserve.take(.resolve)
            #expect(id == nil)
            sizes.append(reserve.refill(.resolve, isMissed: true).count)
        }
        #expect(sizes.reduce(0, +) == ResponseReserve.maximumSize)
        let others = [reserve.refill(.resolve, isMissed: true), reserve.refill(.retrieve, isMissed: true)]
        #expect(others == [[], []], "it is full, and each pattern has its own")
    }

    @Test func responsesToAnIdSubscribedAheadAreDelivered() throws {
        let scene = try Scene()
        let first = try (0..<2).map { _ in try scene.ask() }
        let sources = Recorder<CoatyUUID?>()
        let asked = try scene.ask(handler: { sources.append($0.sourceId) })
        let hasSubscribed = asked.packets.first != .some(nil)
        #expect(!hasSubscribed)
        let object = CoatyObject(coreType: .CoatyObject, objectType: "t", objectId: scene.agent.identityId, name: "n")
        let id = asked.topic.split(separator: "/").last ?? ""
        let bytes = try ResolveEvent.with(object: object).payload.bytes
        let source = CoatyUUID()
        scene.link.received(topic: "coaty/3/-/RSV/\(source)/\(id)", payload: bytes)
        #expect(sources.values == [source])
        withExtendedLifetime((first, asked)) {}
    }

    @Test func aLostConnectionEndsRequestsAndEmptiesTheReserve() throws {
        let scene = try Scene()
        let first = try (0..<2).map { _ in try scene.ask() }
        let ends = Recorder<Bool>()
        let asked = try scene.ask(onEnd: { ends.append(true) })
        scene.link.session.lost(nil)
        #expect(ends.values == [true])
        scene.link.opened()
        scene.link.settle()
        let counts = try scene.ask().packets.map { $0?.count ?? 0 }
        #expect(counts == [1, 0])
        withExtendedLifetime((first, asked)) {}
    }

    @Test func aRefusedSubscriptionEndsTheReserve() throws {
        let scene = try Scene()
        let asked = try (0..<4).map { _ in try scene.ask(refused: true) }
        #expect(asked.map { $0.packets.map { $0?.count ?? 0 } } == Array(repeating: [1, 0], count: 4))
    }

    /// A broker may limit the number of subscriptions.
    @Test func aRefusedSubscriptionFreesAllIdsThatWereSubscribedAhead() throws {
        var reserve = ResponseReserve()
        for _ in 0..<3 { _ = reserve.take(.resolve) }
        var ids: [CoatyUUID] = []
        for _ in 0..<4 { ids += reserve.refill(.resolve, isMissed: true) }
        let selectors = ids.map { EventSelector.responses(.resolve, correlationId: $0) }
        try #require(selectors.count > 3)
        let first = [reserve.answered(selectors[0], isGranted: true), reserve.answered(selectors[1], isGranted: false)]
        #expect(first == [[], selectors[..<2].map(\.self)])
        let later = reserve.answered(selectors[2], isGranted: true)
        #expect(later == [selectors[2]])
        let foreign = reserve.answered(.responses(.resolve, correlationId: CoatyUUID()), isGranted: true)
        #expect(foreign == nil)
    }

    @Test func anIdleReserveIsGivenUp() throws {
        var reserve = ResponseReserve()
        _ = reserve.refill(.resolve, isMissed: true)
        let ids = reserve.refill(.resolve, isMissed: true)
        _ = reserve.take(.resolve)
        let ended = ids.map { reserve.answered(.responses(.resolve, correlationId: $0), isGranted: true) }
        #expect(!ended.isEmpty && ended.allSatisfy { $0 == [] })
        let removed = [reserve.removeIfIdle(), reserve.removeIfIdle()]
        #expect(removed == [[], ids.map { .responses(.resolve, correlationId: $0) }], "first, a request was made")
        #expect(reserve.isEmpty)
        let afterwards = reserve.refill(.resolve, isMissed: true)
        #expect(afterwards.isEmpty, "it starts again")
    }
}
