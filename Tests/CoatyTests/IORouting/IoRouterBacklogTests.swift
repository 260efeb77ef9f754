import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// A router that has more events to publish than the outbox can hold.
@ControllerActor @Suite(.exclusive, .timeLimit(.minutes(2))) struct IoRouterBacklogTests {
    private typealias Scene = RouterScene<RuleBasedIoRouter>

    private static let limits = OutboxLimits(publications: 100)
    private static let actorCount = 100
    private static let sourceCount = 50

    /// Creates a scene with 50 sources, and 100 actors for each of two states.
    private static func scene() async throws -> Scene {
        let rules = #"""
            [{"name": "Responsible actors", "condition":
            ["actorNode.characteristics.state", ["Equals", {"property": "context.operatingState"}]]}]
            """#
        let scene = try await Scene(
            options: ["rules": try IoAssociationRule.rules(JSONDocument(Array(rules.utf8)).root)],
            limits: limits
        )
        try scene.advertise(
            IoNode("n1", sources: (0..<sourceCount).map { IoSource("s\($0)") }),
            IoNode("n2", actors: (0..<actorCount).map { IoActor("n\($0)") }, state: "normal"),
            IoNode("n3", actors: (0..<actorCount).map { IoActor("e\($0)") }, state: "emergency")
        )
        return scene
    }

    /// Returns the events of the router from an index in the published messages.
    private func events(_ scene: Scene, from start: Int) -> [String] {
        scene.broker.published[start...].filter { $0.topic.contains("/\(scene.id)") }.map { message in
            let event = String(message.topic.split(separator: "/")[3])
            guard event.hasPrefix("ASC") else { return event }
            return String(decoding: message.payload, as: UTF8.self).contains("associatingRoute") ? "+" : "-"
        }
    }

    @Test func associationsArePublishedInOrderWithRoomForOthers() async throws {
        var scene = try await Self.scene()
        let all = Self.sourceCount * Self.actorCount
        #expect(try await scene.news().count == all)

        let manager = scene.container.communicationManager
        let hasEnded = Recorder<Bool>()
        let other = Task.detached {
            var count = 0
            while hasEnded.values.isEmpty {
                let (writing, continuation) = AsyncStream.makeStream(of: Void.self)
                let event = try ChannelEvent.with(object: Identity(name: "x"), channelId: "c")
                _ = try manager.publishChannel(event, holding: EndsWhenReleased(continuation))
                count += 1
                // One event at a time, so that these do not fill the queue.
                for await _ in writing {}
            }
            return count
        }
        let before = scene.broker.published.count
        try await scene.update(.test(state: "emergency"))
        hasEnded.append(true)
        #expect(try await other.value > 0, "other events are not refused")
        let events = events(scene, from: before).filter { !$0.hasPrefix("CHN") && $0 != "DSC" }
        let expected =
            ["ADV:IoContext", "ADV::com.example.Context"] + Array(repeating: "-", count: all)
            + Array(repeating: "+", count: all) + ["CPL"]
        #expect(events == expected)
        await scene.end()
    }

    @Test func transientAssociationsAreNotPublished() async throws {
        var scene = try await Self.scene()
        let all = Self.sourceCount * Self.actorCount
        #expect(try await scene.news().count == all)
        let rules = scene.router.rules
        scene.router.rules = []
        #expect(try await scene.news().count == all)
        // The outbox takes some events before the router suspends.
        scene.router.rules = rules
        scene.router.rules = []
        let news = try await scene.news()
        let dissolved = Set(news.filter { $0.hasPrefix("-") })
        #expect(!news.isEmpty && news.count < all)
        #expect(dissolved.count * 2 == news.count)
        #expect(dissolved == Set(news.filter { !$0.hasPrefix("-") }.map { "-" + $0 }))
        await scene.end()
    }

    @Test func associationsAreDissolvedBeforeLeaving() async throws {
        var scene = try await Self.scene()
        #expect(try await scene.news().count == Self.sourceCount * Self.actorCount)
        let before = scene.broker.published.count
        await scene.container.shutdown()
        let events = events(scene, from: before).filter { $0 != "DSC" }
        #expect(events == Array(repeating: "-", count: Self.sourceCount * Self.actorCount) + ["DAD"])
        await scene.others.stop()
    }

    /// An agent that receives the changes ends up without associations, and receives no change twice.
    @Test func onlyPublishedAssociationsAreDissolved() async throws {
        let scene = try await Self.scene()
        _ = try await scene.waitForNews(1)
        await scene.container.shutdown()
        let messages = try await scene.broker.waitForMessages { $0.contains { $0.topic.hasSuffix("/DAD/\(scene.id)") } }
        let associations = messages.filter { $0.topic.hasPrefix("coaty/3/-/ASC:ctx/") }
        let (added, dissolved) = associations.reduce(into: (0, 0)) { count, message in
            if String(decoding: message.payload, as: UTF8.self).contains("associatingRoute") {
                count.0 += 1
            } else {
                count.1 += 1
            }
        }
        #expect(added > 0 && added == dissolved)
        await scene.others.stop()
    }
}

/// An object that ends a stream when it is released.
private final class EndsWhenReleased: PublicationHolder {
    let client: (any PublicationClient)? = nil
    private let continuation: AsyncStream<Void>.Continuation

    init(_ continuation: AsyncStream<Void>.Continuation) { self.continuation = continuation }

    deinit { continuation.finish() }
}
