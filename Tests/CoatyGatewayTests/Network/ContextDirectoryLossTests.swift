import Coaty
import Foundation
import Synchronization
import Testing
import TestSupport

@testable import Network

/// Associations that the directory lists after a router lost its connection. Its will deadvertises the router, but its
/// associations remain in the network until they are dissolved or their IO nodes leave.
@Suite(.exclusive) struct ContextDirectoryLossTests {
    private let scene: DirectoryScene
    private var directory: ContextDirectory { scene.directory }
    private let id = CoatyUUID()
    private let source = CoatyUUID()
    private let actor = CoatyUUID()
    private let sourceNode = CoatyUUID()
    private let actorNode = CoatyUUID()

    init() throws { scene = try DirectoryScene() }

    /// Runs a test with a context whose router has associated one source with one actor.
    private func associated(knownNodes: Bool = true, _ body: (FeedLog) async throws -> Void) async throws {
        try await scene.run {
            scene.advertise(id)
            try await scene.untilDelivered()
            if knownNodes {
                scene.advertiseNode(sourceNode, sources: [source])
                scene.advertiseNode(actorNode, actors: [actor])
            }
            scene.associate(source, actor)
            try await scene.untilDelivered()
            let log = FeedLog()
            let end = try #require(directory.watch(id, log.append))
            defer { end() }
            #expect(log.lines == ["added 1"])
            try await body(log)
        }
    }

    private var listed: [CoatyUUID]? { directory.entry(id)?.associations.map(\.ioSourceId) }

    @Test(arguments: [true, false])
    func associationsStayWhileTheRouterReconnects(knownNodes: Bool) async throws {
        try await associated(knownNodes: knownNodes) { log in
            scene.deadvertise([DirectoryScene.agent])
            try await scene.untilDelivered()
            #expect(listed == [source])
            #expect(directory.entry(id)?.router == nil)
            try await scene.untilConfirmationRuns()
            scene.advertise(id)
            // The router may publish its associations again.
            scene.associate(source, actor)
            try await scene.untilDelivered()
            #expect(listed == [source])
            #expect(directory.entry(id)?.router == DirectoryScene.agent)
            try await scene.endConfirmation()
            try await scene.untilDelivered()
            #expect(listed == [source])
            #expect(log.lines == ["added 1"])
            scene.dissociate(source, actor)
            try await scene.untilDelivered()
            #expect(listed == [])
            #expect(log.lines == ["added 1", "removed 1"])
        }
    }

    @Test func associationsBetweenKnownNodesOutlastTheConfirmationTime() async throws {
        try await associated { log in
            scene.deadvertise([DirectoryScene.agent])
            try await scene.untilDelivered()
            try await scene.endConfirmation()
            try await scene.untilDelivered()
            #expect(listed == [source])
            scene.advertise(id)
            try await scene.untilDelivered()
            #expect(listed == [source])
            #expect(directory.entry(id)?.router == DirectoryScene.agent)
            #expect(log.lines == ["added 1"])
        }
    }

    @Test func associationsOfUnknownNodesEndWithTheConfirmationTime() async throws {
        try await associated(knownNodes: false) { log in
            scene.deadvertise([DirectoryScene.agent])
            try await scene.untilDelivered()
            #expect(listed == [source])
            try await scene.endConfirmation()
            try await untilTrue("the context is gone") { !directory.contains(id) }
            #expect(log.lines == ["added 1", "removed 1"])
        }
    }

    @Test func routerThatDissolvedItsAssociationsIsForgottenAtOnce() async throws {
        try await associated { log in
            scene.dissociate(source, actor)
            scene.deadvertise([DirectoryScene.agent])
            try await scene.untilDelivered()
            #expect(!directory.contains(id))
            #expect(log.lines == ["added 1", "removed 1"])
        }
    }

    enum End: CaseIterable { case node, agent, empty, otherContext, otherPoint }

    @Test(arguments: End.allCases)
    func associationsEndWithTheirPoints(_ end: End) async throws {
        try await associated { log in
            let owner = DirectoryScene.nodeOwner
            switch end {
            case .node: scene.deadvertise([actorNode], by: owner)
            case .agent: scene.deadvertise([owner], by: owner)
            case .empty: scene.advertiseNode(actorNode, actors: [])
            case .otherContext: scene.advertiseNode(actorNode, in: "other", actors: [actor])
            case .otherPoint: scene.advertiseNode(actorNode, actors: [CoatyUUID()])
            }
            try await scene.untilDelivered()
            #expect(listed == [])
            #expect(log.lines == ["added 1", "removed 1"])
        }
    }

    @Test func contextOfLostRouterIsRemovedWithItsLastAssociation() async throws {
        try await associated { log in
            scene.deadvertise([DirectoryScene.agent])
            try await scene.untilDelivered()
            #expect(listed == [source])
            scene.deadvertise([sourceNode], by: DirectoryScene.nodeOwner)
            try await scene.untilDelivered()
            #expect(!directory.contains(id))
            #expect(log.lines == ["added 1", "removed 1"])
        }
    }

    @Test func associationsOfARouterNotSeenAfterAReconnectAreForgotten() async throws {
        try await associated { log in
            try await scene.reconnect()
            // Dissociations may have been missed, so associations in IO nodes prove nothing.
            scene.advertiseNode(sourceNode, sources: [source])
            scene.advertiseNode(actorNode, actors: [actor])
            scene.deadvertise([DirectoryScene.agent])
            try await scene.untilDelivered()
            #expect(listed == [source])
            try await scene.endConfirmation()
            try await untilTrue("the context is gone") { !directory.contains(id) }
            #expect(log.lines == ["added 1", "removed 1"])
        }
    }

    @Test func anAssociationListIsCompleteIfItsRouterWasFollowedFromItsStart() async throws {
        try await scene.run {
            // A router that is seen at once after the gateway has joined may have been there before.
            scene.advertise(id)
            try await scene.untilDelivered()
            #expect(directory.entry(id)?.isComplete == false)
            try await scene.endConfirmation(isAwaited: false)
            let (new, router, other) = (CoatyUUID(), CoatyUUID(), CoatyUUID())
            scene.advertise(new, by: router)
            try await scene.untilDelivered()
            scene.associate(source, actor, by: router)
            #expect(directory.entry(new)?.isComplete == true)
            #expect(directory.entry(id)?.isComplete == false)
            // Another router that only answers has been there before.
            try scene.resolve(new, by: other, parent: other)
            try await scene.untilDelivered()
            #expect(directory.entry(new)?.isComplete == false)
            scene.deadvertise([other], by: other)
            try await scene.untilDelivered()
            #expect(directory.entry(new)?.isComplete == true)
            // It returns, and does not publish its associations again.
            scene.advertise(new, by: other)
            try await scene.untilDelivered()
            #expect(directory.entry(new)?.isComplete == false)
            scene.deadvertise([other], by: other)
            try await scene.untilDelivered()
            #expect(directory.entry(new)?.isComplete == true)

            try await scene.reconnect()
            #expect(directory.entry(new)?.isComplete == false)
            scene.advertise(new, by: router)
            try await scene.untilDelivered()
            try await scene.endConfirmation()
            try await scene.untilDelivered()
            #expect(directory.entry(new)?.isComplete == false)
        }
    }

    @Test func aRouterThatReturnsAfterItWasForgottenHasAnIncompleteList() async throws {
        try await scene.run {
            try await scene.endConfirmation(isAwaited: false)
            scene.advertise(id)
            try await scene.untilDelivered()
            #expect(directory.entry(id)?.isComplete == true)
            scene.deadvertise([DirectoryScene.agent])
            try await scene.untilDelivered()
            #expect(!directory.contains(id))
            scene.advertise(id)
            try await scene.untilDelivered()
            #expect(directory.entry(id)?.isComplete == false)
        }
    }

    @Test func anAssociationThatALostRouterMayKeepIsMissing() async throws {
        try await scene.run {
            try await scene.endConfirmation(isAwaited: false)
            scene.advertise(id)
            scene.advertiseNode(sourceNode, sources: [source])
            scene.advertiseNode(actorNode, actors: [actor])
            try await scene.untilDelivered()
            for other in [actor, CoatyUUID()] { scene.associate(source, other) }
            scene.deadvertise([DirectoryScene.agent])
            try await scene.untilDelivered()
            #expect(listed == [source, source] && directory.entry(id)?.isComplete == true)
            // The router does not see this.
            scene.deadvertise([actorNode], by: DirectoryScene.nodeOwner)
            try await scene.untilDelivered()
            #expect(listed == [source] && directory.entry(id)?.isComplete == false)
        }
    }

    @Test func anotherRouterTakesOverAnAssociation() async throws {
        try await associated { log in
            let other = CoatyUUID()
            scene.associate(source, actor, by: other)
            scene.deadvertise([DirectoryScene.agent])
            try await scene.untilDelivered()
            #expect(directory.entry(id)?.router == other)
            #expect(listed == [source])
            #expect(log.lines == ["added 1"])
        }
    }
}

/// A log of the changes that a watcher of a context received, one line for each kind of change.
private final class FeedLog: Sendable {
    private let entries = Mutex<[String]>([])

    var lines: [String] { entries.withLock(\.self) }

    @Sendable func append(_ payloads: [Payload]) {
        for changes in payloads.compactMap({ $0.json["associations"] }) {
            for (kind, list) in [
                ("added", changes["added"]), ("changed", changes["changed"]), ("removed", changes["removed"]),
            ] {
                let count = list.map { Array($0.elements).count } ?? 0
                if count > 0 { entries.withLock { $0.append("\(kind) \(count)") } }
            }
        }
    }
}
