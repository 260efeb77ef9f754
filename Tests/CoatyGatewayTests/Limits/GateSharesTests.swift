import Coaty
import ProblemDetails
import Synchronization
import Testing
import TestSupport

@testable import Access
@testable import Base
@testable import CoatyTestSupport
@testable import Edge
@testable import Feeds
@testable import Gate
@testable import Network

/// Shares of a client that the gate's operations use.
@Suite(.exclusive) struct GateSharesTests {
    private let token = Principal.token("a")

    private func refusal(_ body: () throws -> Void) -> Int? {
        do {
            try body()
            return nil
        } catch {
            return (error as? Problem)?.status
        }
    }

    /// Creates a scene in which a client may have two queued publications of at most 1,000 bytes each.
    private func sceneWithSmallOutbox() async throws -> GateScene {
        var limits = Limits()
        limits[.outbox].total = 4000
        limits.outboxPublications = 4
        return try await GateScene(limits: limits)
    }

    @Test func subscriptionsAreCountedUntilTheyAreReleased() async throws {
        var limits = Limits()
        limits[.subscriptions].perClient = 2
        let scene = try await GateScene(limits: limits)
        let account = scene.accounts.account(of: .anonymous)
        do {
            let operation = Observe(observation: .channel(WireName("c")), footprint: 1000)
            let opened = try (0..<2).map { _ in try scene.gate.open(operation, by: .anonymous) }
            #expect(account.used(.subscriptions) == 2 && account.used(.feeds) == 1)
            #expect(account.memory.used == 2 * (Observe.cost + 1000))
            #expect(refusal { _ = try scene.gate.open(operation, by: .anonymous) } == 429)
            withExtendedLifetime(opened) {}
        }
        #expect(account.isEmpty && scene.accounts.memory.used == 0)
    }

    @Test func publicationsAreCountedUntilTheyAreWritten() async throws {
        let scene = try await sceneWithSmallOutbox()
        let account = scene.accounts.account(of: .anonymous)
        let event = try ChannelEvent(channelId: "c", payload: Payload(Array(#"{"object":\#(Self.object)}"#.utf8)))
        let operation = Publish(publication: event)
        // The manager is not started, so publications stay queued.
        for _ in 0..<2 { _ = try scene.gate.perform(operation, by: .anonymous) }
        #expect(account.used(.outbox) == 2000)
        #expect(refusal { _ = try scene.gate.perform(operation, by: .anonymous) } == 429)
        #expect(refusal { _ = try scene.gate.perform(operation, by: Principal.token("a")) } == nil)
        scene.start()
        try await untilTrue("all is written") { scene.accounts.used(.outbox) == 0 }
        await scene.stop()
        #expect(account.isEmpty)
    }

    /// An object whose object type is not the default of its core type is published under both types.
    @Test(arguments: [("t", 2), ("coaty.CoatyObject", 1)])
    func eachPublicationOfAnEventCounts(_ objectType: String, _ publications: Int) async throws {
        var limits = Limits()
        limits[.outbox].total = 40_000
        limits.outboxPublications = 40
        let scene = try await GateScene(limits: limits)
        let account = scene.accounts.account(of: .anonymous)
        func used(_ size: Int) throws -> Int {
            let before = account.used(.outbox)
            let object = Self.object.replacing(#""t""#, with: #""\#(objectType)""#)
            let filler = size == 0 ? "" : #","filler":"\#(String(repeating: "x", count: size))""#
            let payload = try Payload(Array(#"{"object":\#(object.dropLast())\#(filler)}}"#.utf8))
            // The manager is not started, so publications stay queued.
            let event = try AdvertiseEvent(payload: payload)
            _ = try scene.gate.perform(Publish(publication: event), by: .anonymous)
            return account.used(.outbox) - before - (size == 0 ? 0 : publications * payload.bytes.count)
        }
        #expect(try used(0) == publications * 1000)
        #expect(try used(2000) == 0)
        scene.start()
        try await untilTrue("all is written") { account.used(.outbox) == 0 && scene.manager.isConnected }
        await scene.stop()
    }

    @Test func updatesCountForEachPublication() async throws {
        let scene = try await sceneWithSmallOutbox()
        scene.start()
        try await untilTrue("online") { scene.manager.isConnected }
        let options = try RequestOptions(QueryParameters(items: [], limits: Limits()))
        // For one and for two publications, sizes above and below the share of 2,000 bytes.
        for (objectType, size, status) in [("t", 1200, 429), ("coaty.CoatyObject", 1200, nil), ("t", 500, nil)] {
            let object = Self.object.replacing(#""t""#, with: #""\#(objectType)""#)
            let text = #"{"object":\#(object.dropLast()),"filler":"\#(String(repeating: "x", count: size))"}}"#
            let payload = try Payload(Array(text.utf8))
            let request = try UpdateEvent.parse(payload)
            var activity: RequestActivity?
            let refused = refusal {
                activity = try scene.gate.open(SendRequest(request: request, options: options), by: .anonymous)
                try activity?.start(into: NoSink())
            }
            #expect(refused == status, "\(objectType) \(size)")
            try await untilTrue("it is written") { scene.accounts.used(.outbox) == 0 }
            activity?.end()
        }
        await scene.stop()
    }

    @Test func requestsAreCountedUntilTheyAreReleased() async throws {
        var limits = Limits()
        limits[.requests].perClient = 1
        let scene = try await GateScene(limits: limits)
        scene.start()
        try await untilTrue("online") { scene.manager.isConnected }
        let account = scene.accounts.account(of: .anonymous)
        let payload = try Payload(Array(#"{"objectTypes":["t"]}"#.utf8))
        let request = try DiscoverEvent.parse(payload)
        let operation = SendRequest(
            request: request,
            options: try RequestOptions(QueryParameters(items: [], limits: Limits()))
        )
        do {
            let opened = try scene.gate.open(operation, by: .anonymous)
            #expect(account.used(.requests) == 1 && account.memory.used > SendRequest.cost)
            #expect(refusal { _ = try scene.gate.open(operation, by: .anonymous) } == 429)
            withExtendedLifetime(opened) {}
        }
        #expect(account.isEmpty)
        await scene.stop()
    }

    @Test func answersAreCountedUntilTheyAreWritten() async throws {
        let scene = try await sceneWithSmallOutbox()
        let account = scene.accounts.account(of: .anonymous)
        let rights = AnswerRights(window: .seconds(60), limit: 10)
        let answers = try (0..<3).map { number in
            let address = try #require(EventAddress(topic: "coaty/3/-/CLL:o/\(CoatyUUID())/r\(number)"))
            let event = try CallEvent(payload: Payload(Array("{}".utf8)), address: address)
            let id = try #require(event.correlationId)
            scene.hub.requests.insert(event)
            rights.insert(DeliveredRequest(correlationId: id, isDiscover: false))
            let content = try Payload(Array(#"{"result":1}"#.utf8))
            return Answer(correlationId: id, event: .return, content: content, rights: rights)
        }
        // The manager is not started, so responses stay queued.
        for answer in answers.prefix(2) { _ = try scene.gate.perform(answer, by: .anonymous) }
        #expect(account.used(.outbox) == 2000)
        #expect(refusal { _ = try scene.gate.perform(answers[2], by: .anonymous) } == 429)
        scene.start()
        try await untilTrue("all is written") { scene.accounts.used(.outbox) == 0 }
        #expect(refusal { _ = try scene.gate.perform(answers[2], by: .anonymous) } == nil)
        await scene.stop()
    }

    /// A request counts in the outbox until it is written, not as long as it is pending.
    @Test func requestsAreCountedInTheOutbox() async throws {
        let scene = try await sceneWithSmallOutbox()
        scene.start()
        try await untilTrue("online") { scene.manager.isConnected }
        let sink = NoSink()
        for (size, status) in [(10, nil), (2500, 429)] {
            let text = #"{"objectTypes":["\#(String(repeating: "x", count: size))"]}"#
            let payload = try Payload(Array(text.utf8))
            let request = try DiscoverEvent.parse(payload)
            let options = try RequestOptions(QueryParameters(items: [], limits: Limits()))
            var activity: RequestActivity?
            let operation = SendRequest(request: request, options: options)
            // The gate refuses before publishing, because a stream has already sent its status by then.
            #expect(refusal { activity = try scene.gate.open(operation, by: .anonymous) } == status)
            #expect(scene.accounts.used(.outbox) == (status == nil ? 1000 : 0))
            try activity?.start(into: sink)
            try await untilTrue("it is written") { scene.accounts.used(.outbox) == 0 }
            #expect(scene.accounts.used(.requests) == (status == nil ? 1 : 0))
            activity?.end()
        }
        await scene.stop()
    }

    @Test func responsesThatWaitAreBoundedByTheSetting() async throws {
        let workers = WorkerPool(name: "stuck", threads: 1)
        let scene = try await GateScene(workers: workers)
        scene.start()
        try await untilTrue("online") { scene.manager.isConnected }
        var limits = Limits()
        limits.waitingResponses = 2
        let options = try RequestOptions(
            QueryParameters(items: [("limit", "0"), ("timeout", "60000")], limits: limits)
        )
        let payload = try Payload(Array(#"{"objectTypes":["t"]}"#.utf8))
        let request = try DiscoverEvent.parse(payload)
        let activity = try scene.gate.open(SendRequest(request: request, options: options), by: .anonymous)
        let sink = CountingSink()
        try activity.start(into: sink)
        let asked = try await scene.broker.waitForMessages { $0.contains { $0.payload == payload.bytes } }
        let topic = try #require(asked.first { $0.payload == payload.bytes }?.topic)
        let id = try #require(topic.split(separator: "/").last)
        func respond() {
            let text = #"{"object":\#(Self.object)}"#
            scene.broker.publish(topic: "coaty/3/-/RSV/agent/\(id)", payload: Array(text.utf8))
        }
        for _ in 0..<3 { respond() }
        // The broker delivers messages one after the other.
        scene.broker.publish(topic: "behind", payload: [])
        _ = try await scene.broker.waitForMessages { $0.contains { $0.topic == "behind" } }
        #expect(sink.taken.load(ordering: .relaxed) == 0)
        workers.start()
        try await untilTrue("it ends") { sink.end.withLock(\.self) != nil }
        #expect(sink.end.withLock(\.self) == .overflow && sink.taken.load(ordering: .relaxed) == 2)
        activity.end()
        await workers.stop()
        await scene.stop()
    }

    private func advertise(
        _ id: CoatyUUID,
        size: Int,
        coreType: String = "CoatyObject",
        lifetime: ObjectLifetime? = nil,
        in scene: GateScene,
        by principal: Principal = .anonymous
    ) throws -> PublishOutcome {
        let known = #""coreType":"\#(coreType)","objectType":"t","objectId":"\#(id)""#
        let log = coreType == "Log" ? #","logLevel":20,"logMessage":"m","logDate":"2026-01-01T00:00:00Z""# : ""
        let text = #"{"object":{\#(known)\#(log),"name":"\#(String(repeating: "x", count: size))"}}"#
        let event = try AdvertiseEvent(payload: Payload(Array(text.utf8)))
        return try scene.gate.perform(Publish(publication: event, lifetime: lifetime), by: principal)
    }

    @Test func keptObjectsAreCountedUntilTheyAreDeadvertised() async throws {
        var limits = Limits()
        limits[.keptObjects] = Limits.Count(total: 100_000, perClient: 20_000)
        limits.keptObjects = 20
        let scene = try await GateScene(limits: limits)
        scene.start()
        try await untilTrue("online") { scene.manager.isConnected }
        let account = scene.accounts.account(of: .anonymous)
        func untilCounted(_ bytes: ClosedRange<Int>) async throws {
            try await untilTrue("\(bytes) are counted") {
                scene.accounts.used(.outbox) == 0 && bytes.contains(account.used(.keptObjects))
            }
        }
        let id = CoatyUUID()
        #expect(try advertise(id, size: 10_000, in: scene).hasRoom)
        try await untilCounted(11_000...11_200)
        // A new version takes the room of the previous one.
        #expect(try advertise(id, size: 12_000, in: scene).hasRoom)
        try await untilCounted(13_000...13_200)
        #expect(try advertise(id, size: 100, in: scene).hasRoom)
        try await untilCounted(5000...5000)
        #expect(try advertise(CoatyUUID(), size: 100, coreType: "Log", in: scene).hasRoom)
        #expect(try !advertise(CoatyUUID(), size: 15_000, in: scene).hasRoom)
        let lasting = ObjectLifetime.duration(.seconds(60))
        #expect(refusal { _ = try advertise(CoatyUUID(), size: 15_000, lifetime: lasting, in: scene) } == 429)
        #expect(try advertise(CoatyUUID(), size: 15_000, in: scene, by: token).hasRoom)
        try await untilCounted(5000...5000)
        // The previous version is no longer advertised, either.
        #expect(try !advertise(id, size: 25_000, in: scene).hasRoom)
        try await untilCounted(0...0)
        _ = try advertise(id, size: 100, in: scene)
        let end = try Publish(publication: DeadvertiseEvent.with(objectIds: [id]))
        _ = try scene.gate.perform(end, by: .anonymous)
        try await untilCounted(0...0)
        await scene.stop()
    }

    @Test func objectsOfAPrincipalAreCountedUntilTheyAreRemoved() throws {
        let owners = ObjectOwners()
        var limits = Limits()
        limits[.objects].perClient = 2
        let accounts = Accounts(limits, logger: .init(label: "test"))
        let account = accounts.account(of: token)
        let ids = (0..<3).map { _ in CoatyUUID() }
        for id in ids.prefix(2) { try owners.insert(id, token.subject, account) }
        try owners.insert(ids[0], token.subject, account)
        #expect(refusal { try owners.insert(ids[2], token.subject, account) } == 429)
        owners.remove([ids[0], ids[0]])
        try owners.insert(ids[2], token.subject, account)
        #expect(owners.owner(ids[2]) == token.subject && owners.owner(ids[0]) == nil)
        owners.remove(ids)
        #expect(account.isEmpty)
    }

    private static let object = #"{"coreType":"CoatyObject","objectType":"t","objectId":"\#(CoatyUUID())","name":"n"}"#
}

/// A sink that counts responses.
private final class CountingSink: ResponseSink {
    let taken = Atomic(0)
    let end = Mutex<ServerFrame.EndReason?>(nil)

    func take(_ frame: ServerFrame) -> Bool {
        taken.add(1, ordering: .relaxed)
        return true
    }

    func end(_ reason: ServerFrame.EndReason, isFiltered: Bool) { end.withLock { $0 = reason } }
    func fail(_ problem: Problem) {}
    func occupy(_ places: [any AnyObject & Sendable]) {}
    func discard(_ problem: Problem) {}
}

/// A sink that discards responses.
private final class NoSink: ResponseSink {
    private let places = Mutex<[any AnyObject & Sendable]>([])

    func take(_ frame: ServerFrame) -> Bool { true }
    func end(_ reason: ServerFrame.EndReason, isFiltered: Bool) { places.withLock { $0 = [] } }
    func fail(_ problem: Problem) { places.withLock { $0 = [] } }
    func occupy(_ places: [any AnyObject & Sendable]) { self.places.withLock { $0 = places } }
    func discard(_ problem: Problem) {}
}
