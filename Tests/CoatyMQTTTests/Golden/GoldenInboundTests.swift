import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Messages that reference agents accept are accepted, and messages that they drop are dropped.
@Suite(.exclusive) struct GoldenInboundTests {
    private static let lines = Result { try Golden.lines("inbound.jsonl", as: Golden.Inbound.self) }

    /// Returns whether a line has a deliberate difference, or is about IO points, where lines depend on earlier lines.
    private static func isSpecial(_ line: Golden.Inbound) -> Bool {
        line.note.contains("UTF-8") || line.note == "query objectTypes without objectFilter" || isOfIoPoints(line)
    }

    private static func isOfIoPoints(_ line: Golden.Inbound) -> Bool {
        line.note.contains("ssociat") || line.note.hasPrefix("iovalue")
    }

    @Test func acceptsTheSameEventsAsTheReference() async throws {
        let lines = try Self.lines.get().filter { !Self.isSpecial($0) }
        #expect(lines.count > 120)
        for line in lines {
            #expect(try await isTaken(line.topic, line.payload, request: line.request) == line.accepted, "\(line.note)")
        }
    }

    /// The reference fails with a null reference on a Query event without `objectFilter`, which is not a deliberate
    /// refusal.
    @Test func acceptsAQueryWithoutObjectFilter() async throws {
        let line = try #require(try Self.lines.get().first { $0.note == "query objectTypes without objectFilter" })
        #expect(!line.accepted)
        #expect(try await isTaken(line.topic, line.payload, request: nil))
    }

    /// The recording keeps payloads as text, so its line about invalid UTF-8 can't be distinguished from valid text.
    /// Such bytes can't be sent in a WebSocket text frame, so they are dropped.
    @Test func dropsInvalidUTF8() async throws {
        #expect(try Self.lines.get().contains { $0.note.contains("UTF-8") })
        #expect(throws: PayloadError.self) { try Payload([0x22, 0xFF, 0x22]) }
    }

    @Test func acceptsTheSameAssociationsAndValuesAsTheReference() async throws {
        let broker = TopicBroker()
        let node = IoNode(
            name: "CtxI",
            ioSources: [
                IoSource(valueType: "v", name: "S", objectId: .init(wire: "00000000-0000-4000-8000-000000000070"))
            ],
            ioActors: [
                IoActor(valueType: "v", name: "A", objectId: .init(wire: "00000000-0000-4000-8000-000000000071"))
            ]
        )
        let actorId = node.ioActors[0].objectId
        let manager = try CommunicationManager(
            identity: Identity(name: "Assoc"),
            ioNodes: [node],
            options: CommunicationOptions(namespace: "golden") { _ in TopicBinding(broker: broker) }
        )
        let seen = Recorder<String>()
        let states = manager.subscribe(ioStateOf: actorId) { seen.append("state \($0.hasAssociations)") }
        let values = manager.subscribe(ioValuesOf: actorId) {
            seen.append("value \(String(decoding: $0.bytes, as: UTF8.self))")
        }
        manager.start()
        _ = try await broker.waitForMessages(2)
        var count = 0
        func publish(_ topic: String, _ payload: String) async throws {
            count += 1
            let end = "end/\(count)"
            broker.publish(topic: topic, payload: Array(payload.utf8))
            broker.publish(topic: end, payload: [])
            _ = try await broker.waitForMessages { $0.contains { $0.topic == end } }
            // The subscription of an association is queued after the message.
            try await withPatience { while manager.queued.operations > 0 { await Task.yield() } }
        }
        var checked = 0
        for line in try Self.lines.get() where Self.isOfIoPoints(line) {
            if line.note == "iovalue after dissociation" {
                // The recorded agent was dissociated before this line, but the recording has no line for that.
                try await publish(
                    "coaty/3/golden/ASC:CtxI/ffffffff-ffff-4fff-8fff-ffffffffffff",
                    #"{"ioSourceId":"\#(node.ioSources[0].objectId)","ioActorId":"\#(actorId)"}"#
                )
            }
            let before = seen.values.count
            try await publish(line.topic, line.payload)
            let isTaken = seen.values.count > before
            if line.note == "associate with wildcard route" {
                // The reference reports an association, and an invalid route. No value can arrive on this route, so
                // here the event dissolves the association, and is reported as such.
                #expect(seen.values.last == "state false")
            } else {
                #expect(isTaken == line.accepted, "\(line.note)")
            }
            checked += 1
        }
        #expect(checked >= 11)
        await manager.stop()
        withExtendedLifetime((states, values)) {}
    }

    private func isTaken(_ topic: String, _ payload: String, request: Golden.Inbound.Request?) async throws -> Bool {
        let broker = TopicBroker()
        let manager = try CommunicationManager(
            identity: Identity(name: "Observer"),
            options: CommunicationOptions(namespace: "golden") { _ in TopicBinding(broker: broker) }
        )
        let seen = Recorder<CommunicationEventType>()
        let ownId = manager.identityId
        @Sendable func see<Event: CommunicationEvent>(_ event: Event) {
            if event.sourceId != ownId { seen.append(Event.eventType) }
        }
        var subscriptions = CoreType.allCases.flatMap {
            [
                manager.subscribe(.advertise(withCoreType: $0), handler: see),
                manager.subscribe(.update(withCoreType: $0), handler: see),
            ]
        }
        subscriptions += [
            try manager.subscribe(.advertise(withObjectType: "com.example.Thing"), handler: see),
            manager.subscribe(.deadvertise, handler: see),
            try manager.subscribe(.channel("c"), handler: see),
            manager.subscribe(.discover, handler: see),
            manager.subscribe(.query, handler: see),
            try manager.subscribe(.call(operation: "op"), handler: see),
        ]
        if let request {
            let asked = try #require(EventAddress(topic: request.topic))
            let payload = try Payload(Array(request.payload.utf8))
            func observe<Request: RequestEvent>(_ request: Request) {
                guard let correlationId = request.correlationId else { return }
                subscriptions.append(
                    manager.subscribe(responsesTo: correlationId, onEnd: nil) { (event: Request.Response) in
                        if (try? request.checkFits(event)) != nil { see(event) }
                    }
                )
            }
            switch asked.eventType {
            case .discover: try observe(DiscoverEvent(payload: payload, address: asked))
            case .query: try observe(QueryEvent(payload: payload, address: asked))
            case .update: try observe(UpdateEvent(payload: payload, address: asked))
            default: try observe(CallEvent(payload: payload, address: asked))
            }
        }
        manager.start()
        // The identity is advertised after the subscriptions.
        _ = try await broker.waitForMessages(1)
        broker.publish(topic: topic, payload: Array(payload.utf8))
        broker.publish(topic: "end", payload: [])
        _ = try await broker.waitForMessages { $0.contains { $0.topic == "end" } }
        await manager.stop()
        return !seen.values.isEmpty
    }
}
