import Testing
import TestSupport

@testable import Cluster
@testable import Coaty
@testable import CoatyTestSupport
@testable import Feeds
@testable import Network

/// The announcement of feeds to other gateways, and the mirrors of theirs.
@Suite(.exclusive, .closesOutboundQueues) struct PeerFeedsTests {
    private let broker = TopicBroker()
    private let outbound = OutboundQueue(SteeredTransport())
    private let hub: FeedHub
    private let feeds: PeerFeeds
    private let peers = [CoatyUUID(), CoatyUUID()]

    init() async throws {
        let options = CommunicationOptions { [broker] _ in TopicBinding(broker: broker) }
        let manager = try CommunicationManager(identity: Identity(name: "gateway"), options: options)
        let objects = ObjectRegistry(manager: manager, clock: SteeredClock(), logger: .init(label: "test"))
        let cluster = ClusterCursors(
            try ClusterKey(secret: String(repeating: "k", count: 32), "test"),
            session: 1,
            clock: { .zero },
            translate: { _, _ in nil }
        )
        var limits = Made.limits
        limits.peerFeeds = 3
        limits[.feeds].total = 2
        hub = await FeedHub(
            manager,
            objects,
            options,
            resumeWindow: .seconds(3600),
            limits: limits,
            cluster: cluster
        )
        feeds = PeerFeeds(hub) {}
        manager.start()
        try await untilTrue("the gateway is online") { manager.isOnline }
    }

    private func channel(_ id: String) -> Observation { .channel(WireName(id)) }

    private func subscribe(_ request: Observation) -> @Sendable () -> Void {
        hub.subscribe(outbound.open(id: "s"), to: request)
    }

    private func receive(_ text: String, from peer: Int = 0, replacesAll: Bool = false) throws {
        feeds.receive(try Payload(Array(text.utf8)).json, replacesAll: replacesAll, from: peers[peer])
    }

    private func texts(_ pieces: [[UInt8]]) -> [String] { pieces.map { String(decoding: $0, as: UTF8.self) } }

    private func later(_ duration: Duration) { feeds.advance(to: .now + duration) }

    @Test func feedsOfClientsAreAnnounced() throws {
        #expect(texts(feeds.takeWhole()) == ["{}"])
        let end = subscribe(channel("a \"quoted\""))
        let other = subscribe(.call(operation: WireName("o")))
        #expect(texts(feeds.takeChanges()) == [#"{"added":["channelId:a \"quoted\""]}"#])
        #expect(feeds.takeChanges().isEmpty)
        // Its clients may resume.
        end()
        #expect(feeds.takeChanges().isEmpty)
        #expect(texts(feeds.takeWhole()) == [#"{"added":["channelId:a \"quoted\""]}"#])
        other()
        // The two unused feeds make room.
        _ = subscribe(.advertise(.core(.Task)))
        #expect(
            texts(feeds.takeChanges()).sorted() == [
                #"{"added":["coreType:Task"]}"#, #"{"removed":["channelId:a \"quoted\""]}"#,
            ]
        )
        try receive(#"{"added":["deadvertise","objectType:t"]}"#)
        #expect(feeds.takeChanges().isEmpty && texts(feeds.takeWhole()) == [#"{"added":["coreType:Task"]}"#])
    }

    @Test func mirrorsStayForTheResumeWindow() throws {
        try receive(#"{"added":["channelId:a","channelId:b"]}"#, replacesAll: true)
        try receive(#"{"added":["channelId:b"]}"#, from: 1)
        #expect(hub.mirrorCount == 2 && hub.count == 0)
        try receive(#"{"removed":["channelId:a"]}"#)
        later(.seconds(3590))
        #expect(hub.mirrorCount == 2)
        later(.seconds(3610))
        #expect(hub.mirrorCount == 1)
        feeds.handle(.left(peers[0]))
        later(.seconds(3610))
        #expect(hub.mirrorCount == 1)
        feeds.handle(.missing(peers[1]))
        later(.seconds(3590))
        #expect(hub.mirrorCount == 1)
        // It is heard again: its state is as before.
        feeds.handle(.joined(peers[1]))
        later(.seconds(3610))
        #expect(hub.mirrorCount == 1)
        try receive("{}", from: 1, replacesAll: true)
        later(.seconds(3610))
        #expect(hub.mirrorCount == 0)
    }

    @Test func mirrorsAreBounded() throws {
        try receive(#"{"added":["channelId:a","channelId:b","channelId:c","channelId:d","call:x","channelId:","x"]}"#)
        #expect(hub.mirrorCount == 3)
        later(.zero)
        #expect(hub.mirrorCount == 3)
        try receive(#"{"removed":["channelId:a"]}"#)
        later(.seconds(3610))
        later(.zero)
        #expect(hub.mirrorCount == 3)
        // A mirror takes no place of clients' feeds, until a client uses it.
        let ends = ["b", "e"].map { subscribe(channel($0)) }
        #expect(hub.count == 2 && hub.mirrorCount == 2)
        #expect(hub.refusal(of: channel("c")) != nil && hub.refusal(of: channel("b")) == nil)
        for end in ends { end() }
        #expect(hub.refusal(of: channel("c")) == nil)
        // The feed that makes room becomes a mirror again.
        _ = subscribe(channel("f"))
        #expect(hub.count == 2 && hub.mirrorCount == 3)
        later(.seconds(3610))
        #expect(hub.mirrorCount == 3)
    }

    @Test func longAnnouncementsHaveSeveralPieces() throws {
        let names = (0..<200).map { "\($0)" + String(repeating: "x", count: 1000) }
        let text = #"{"added":[\#(names.map { #""channelId:\#($0)""# }.joined(separator: ","))]}"#
        try receive(text, replacesAll: true)
        let pieces = PeerFeeds.pieces(added: names.map(channel), removed: [channel("r")])
        #expect(pieces.count == 8 && pieces.allSatisfy { $0.count <= PeerFeeds.maximumPiece })
        let received = try pieces.flatMap { piece in
            try Payload(piece).json["added"].map { $0.elements.compactMap(\.string) } ?? []
        }
        #expect(received == names.map { "channelId:" + $0 })
    }

    @Test(arguments: [
        Observation.advertise(.core(.Task)), .advertise(.object(WireName("a:b"))), .deadvertise,
        .channel(WireName("é:")),
    ])
    func namesOfObservationsRoundTrip(_ observation: Observation) throws {
        #expect(Observation(peerName: try #require(observation.peerName)) == observation)
    }
}
