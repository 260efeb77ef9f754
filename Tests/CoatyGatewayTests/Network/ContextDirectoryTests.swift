import Coaty
import Foundation
import Synchronization
import Testing
import TestSupport

@testable import Network

/// The IO contexts of other agents that the directory lists, on an in-memory broker.
@Suite(.exclusive) struct ContextDirectoryTests {
    private let scene: DirectoryScene
    private var directory: ContextDirectory { scene.directory }

    init() throws { scene = try DirectoryScene() }

    @Test func nodesAndAssociationsKeepTheOrderOfTheirArrival() async throws {
        try await scene.run {
            let id = CoatyUUID()
            scene.advertise(id)
            try await scene.untilDelivered()
            let nodes = (0..<20).map { _ in CoatyUUID() }
            for node in nodes { scene.advertiseNode(node) }
            let pairs = (0..<20).map { _ in (CoatyUUID(), CoatyUUID()) }
            for (source, actor) in pairs { scene.associate(source, actor) }
            // A new rate keeps the order; a dissolved association, and a node that was in another context, lose their
            // place.
            scene.associate(pairs[3].0, pairs[3].1, rate: 7)
            scene.dissociate(pairs[4].0, pairs[4].1)
            scene.advertiseNode(nodes[5], in: "other")
            scene.advertiseNode(nodes[6])
            try await untilTrue("all events have arrived") {
                directory.entry(id)?.nodes.count == 19 && directory.entry(id)?.associations.count == 19
                    && directory.entry(id)?.associations[3].updateRate == 7
            }
            let entry = try #require(directory.entry(id))
            #expect(entry.nodes.map { $0["objectId"]?.string } == (nodes[..<5] + nodes[6...]).map(\.string))
            #expect(entry.associations.map(\.ioSourceId) == (pairs[..<4] + pairs[5...]).map(\.0))
            scene.deadvertise([nodes[0], id])
            try await untilTrue("the context is gone") { !directory.contains(id) }
            #expect(directory.entries.isEmpty)
        }
    }

    @Test func contextsAndNodesNotSeenAfterAReconnectAreForgotten() async throws {
        try await scene.run {
            let (gone, back, node) = (CoatyUUID(), CoatyUUID(), CoatyUUID())
            for id in [gone, back] { scene.advertise(id) }
            scene.advertiseNode(node)
            try await untilTrue("all are known") {
                directory.entry(gone)?.nodes.count == 1 && directory.contains(back)
            }
            try await scene.reconnect()
            #expect(directory.entries.count == 2)
            scene.advertise(back, members: #","x":1"#)
            try await untilTrue("one context is confirmed") { directory.json(back)?["x"] != nil }
            try await scene.endConfirmation()
            try await untilTrue("the other context is gone") { !directory.contains(gone) }
            #expect(directory.entry(back)?.nodes.isEmpty == true)
        }
    }

    @Test func anotherRouterOfAHostedContextIsReportedOnce() async throws {
        try await scene.run {
            let (other, cache) = (CoatyUUID(), CoatyUUID())
            for _ in 0..<10 { scene.advertise(DirectoryScene.hosted, by: CoatyUUID()) }
            try scene.resolve(DirectoryScene.hosted, by: cache, parent: scene.manager.identityId)
            for _ in 0..<10 { try scene.resolve(DirectoryScene.hosted, by: other, parent: other) }
            try await scene.untilDelivered()
            #expect(scene.reportedRouters.withLock(\.self) == [other])
            #expect(!directory.contains(DirectoryScene.hosted))
        }
    }

    // MARK: - Routers of a context

    @Test func contextStaysWhileAnotherAgentRoutesIt() async throws {
        try await scene.run {
            let (id, last) = (CoatyUUID(), CoatyUUID())
            scene.advertise(id, members: #","parentObjectId":"\#(DirectoryScene.agent)""#)
            scene.advertise(id, by: last, members: #","parentObjectId":"\#(last)""#)
            try await scene.untilDelivered()
            #expect(directory.entry(id)?.router == last)
            #expect(directory.entry(id)?.otherRouters == [DirectoryScene.agent])
            scene.deadvertise([last], by: last)
            try await scene.untilDelivered()
            #expect(directory.entry(id)?.router == DirectoryScene.agent)
            #expect(directory.entry(id)?.otherRouters == [])
            scene.deadvertise([DirectoryScene.agent])
            try await scene.untilDelivered()
            #expect(!directory.contains(id))
        }
    }

    @Test func agentThatOnlyAssociatesKeepsTheContext() async throws {
        try await scene.run {
            let (id, other) = (CoatyUUID(), CoatyUUID())
            scene.advertise(id)
            try await scene.untilDelivered()
            let (source, actor) = (CoatyUUID(), CoatyUUID())
            scene.associate(source, actor, by: other)
            scene.deadvertise([DirectoryScene.agent])
            try await scene.untilDelivered()
            #expect(directory.entry(id)?.router == other)
            #expect(directory.entry(id)?.associations.map(\.ioSourceId) == [source])
        }
    }

    @Test func agentThatAnswersWithAStoredCopyIsNotARouter() async throws {
        try await scene.run {
            let (id, stored, cache) = (CoatyUUID(), CoatyUUID(), CoatyUUID())
            scene.advertise(id, members: #","parentObjectId":"\#(DirectoryScene.agent)","x":2"#)
            for id in [id, stored] {
                try scene.resolve(id, by: cache, parent: DirectoryScene.agent, members: #","x":1"#)
            }
            try await scene.untilDelivered()
            #expect(directory.entry(id)?.router == DirectoryScene.agent)
            #expect(directory.entry(id)?.otherRouters == [])
            #expect(directory.json(id)?["x"]?.bytes.elementsEqual("2".utf8) == true)
            #expect(!directory.contains(stored))
            scene.deadvertise([cache, id], by: cache)
            try await scene.untilDelivered()
            #expect(directory.contains(id))
        }
    }

    @Test func routerIsRecognizedByTheContextThatItAnswersWith() async throws {
        try await scene.run {
            let (id, router) = (CoatyUUID(), CoatyUUID())
            try scene.resolve(id, by: router, parent: router)
            try await scene.untilDelivered()
            #expect(directory.entry(id)?.router == router)
        }
    }
}
