import Testing

@testable import Coaty

/// What we publish, and what we take, is what reference agents publish and take.
@Suite struct GoldenTests {
    private static let events: Set<CommunicationEventType> = [.advertise, .deadvertise, .channel, .discover, .resolve]

    @Test func publishesWhatTheReferencePublishes() async throws {
        let vectors = try Golden.lines("vectors.jsonl", as: Golden.Vector.self)
        var groups: [[Golden.Vector]] = []
        for vector in vectors {
            guard let topic = CommunicationTopic(vector.topic), Self.events.contains(topic.eventType),
                vector.encoding == "utf8"
            else { continue }
            if let last = groups.last?.last, last.note == vector.note, last.payload == vector.payload,
                topic.eventType == .advertise, CommunicationTopic(last.topic)?.eventTypeFilter?.hasPrefix(":") == false,
                topic.eventTypeFilter?.hasPrefix(":") == true
            {
                groups[groups.count - 1].append(vector)
            } else {
                groups.append([vector])
            }
        }
        #expect(groups.count > 100)
        for group in groups {
            let published = try await publish(group[0])
            #expect(published.map(\.topic) == group.map(\.topic), "\(group[0].note)")
            for (message, vector) in zip(published, group) {
                #expect(try ComparableJSON(message.payload) == ComparableJSON(vector.payload), "\(vector.note)")
            }
        }
    }

    /// Decodes a recorded message into typed objects and publishes them anew as the agent that sent it.
    private func publish(_ vector: Golden.Vector) async throws -> [(topic: String, payload: [UInt8])] {
        let topic = try #require(CommunicationTopic(vector.topic))
        let payload = try Payload(Array(vector.payload.utf8))
        let broker = InMemoryBroker()
        let manager = try CommunicationManager(
            identity: Identity(name: "Golden", objectId: topic.sourceId),
            options: CommunicationOptions(namespace: topic.namespace) { _ in InMemoryBinding(broker: broker) }
        )
        manager.start()
        try await manager.untilOnline()
        let joined = try await broker.waitForMessages(1)
        switch topic.eventType {
        case .advertise:
            let data = try AdvertiseEvent(payload: payload, topic: topic).data
            try manager.publishAdvertise(.with(object: data.object, privateData: data.privateData))
        case .deadvertise:
            try manager.publishDeadvertise(
                .with(objectIds: DeadvertiseEvent(payload: payload, topic: topic).data.objectIds)
            )
        case .channel:
            let data = try ChannelEvent(payload: payload, topic: topic).data
            let channelId = try #require(topic.eventTypeFilter)
            if let object = try data.object {
                try manager.publishChannel(.with(object: object, channelId: channelId, privateData: data.privateData))
            } else {
                let objects = try #require(try data.objects)
                try manager.publishChannel(.with(objects: objects, channelId: channelId, privateData: data.privateData))
            }
        case .discover:
            let asked = try DiscoverEvent(payload: payload, topic: topic).data
            let event = try DiscoverEvent(payload: Payload(encoding: asked))
            let responder = Responder(manager: manager)
            _ = try responder.respond(.discover, #require(topic.correlationId), event.payload)
        default:
            let data = try ResolveEvent(payload: payload, topic: topic).data
            let event =
                if let object = try data.object {
                    try ResolveEvent.with(
                        object: object,
                        relatedObjects: data.relatedObjects,
                        privateData: data.privateData
                    )
                } else {
                    try ResolveEvent.with(
                        relatedObjects: #require(try data.relatedObjects),
                        privateData: data.privateData
                    )
                }
            let responder = Responder(manager: manager)
            _ = try responder.respond(.resolve, #require(topic.correlationId), event.payload)
        }
        broker.publish(topic: "end", payload: [])
        let published = try await broker.waitForMessages { $0.contains { $0.topic == "end" } }
        await manager.stop()
        // An agent that looks for identities answers itself, too.
        return published.prefix { $0.topic != "end" }.dropFirst(joined.count).filter {
            CommunicationTopic($0.topic)?.eventType == topic.eventType
        }
    }

    @Test func takesWhatTheReferenceTakes() async throws {
        // The recording keeps payloads as text, so the one line about bytes that are no UTF-8 can't be told from valid text;
        // such bytes are dropped here (see `JSONDocumentTests`).
        let lines = try Golden.lines("inbound.jsonl", as: Golden.Inbound.self).filter { line in
            !line.note.contains("UTF-8")
                && Self.events.contains {
                    line.topic.contains("/\($0.rawValue)/") || line.topic.contains("/\($0.rawValue):")
                }
        }
        #expect(lines.count > 70)
        for line in lines {
            #expect(try await isTaken(line) == line.accepted, "\(line.note): \(line.payload)")
        }
    }

    private func isTaken(_ line: Golden.Inbound) async throws -> Bool {
        let broker = InMemoryBroker()
        let manager = try CommunicationManager(
            identity: Identity(name: "Observer"),
            options: CommunicationOptions(namespace: "golden") { _ in InMemoryBinding(broker: broker) }
        )
        let seen = Recorder<CommunicationEventType>()
        let ownId = manager.identityId
        @Sendable func see<Event: CommunicationEvent>(_ event: Event) {
            if event.sourceId != ownId { seen.append(Event.eventType) }
        }
        var subscriptions = CoreType.allCases.map { manager.subscribe(.advertise(withCoreType: $0), handler: see) }
        subscriptions += [
            try manager.subscribe(.advertise(withObjectType: "com.example.Thing"), handler: see),
            manager.subscribe(.deadvertise, handler: see),
            try manager.subscribe(.channel("c"), handler: see),
            manager.subscribe(.discover, handler: see),
        ]
        if let text = line.request, let correlationId = CommunicationTopic(line.topic)?.correlationId {
            let request = try DiscoverEvent(payload: Payload(Array(text.payload.utf8)))
            let answers = manager.subscribe(responsesTo: correlationId, onEnd: nil) { (event: ResolveEvent) in
                if (try? request.checkFits(event)) != nil { see(event) }
            }
            subscriptions.append(answers)
        }
        manager.start()
        // The identity is advertised behind the subscriptions.
        _ = try await broker.waitForMessages(1)
        broker.publish(topic: line.topic, payload: Array(line.payload.utf8))
        broker.publish(topic: "end", payload: [])
        _ = try await broker.waitForMessages { $0.contains { $0.topic == "end" } }
        await manager.stop()
        return !seen.values.isEmpty
    }

    @Test func joinsAndLeavesAsTheReferenceDoes() async throws {
        let packets = try Golden.lines("wire.jsonl", as: Golden.Packet.self)
        let connect = try #require(packets.first { $0.cmd == "connect" })
        let will = try #require(connect.will)
        let first = packets.filter { $0.step == connect.step && $0.clientId == connect.clientId }
        #expect(first.map(\.cmd) == ["connect", "subscribe", "publish"])

        let binding = RecordingBinding()
        let identityId = try #require(CoatyUUID(uuidString: "11111111-1111-4111-8111-111111111111"))
        let manager = try CommunicationManager(
            identity: Identity(name: "Publisher", objectId: identityId),
            options: CommunicationOptions(namespace: "golden") { _ in binding }
        )
        manager.start()
        let link = try #require(binding.link)
        #expect(link.clientId == connect.clientId)
        #expect(link.will.topic == will.topic)
        #expect(try ComparableJSON(link.will.payload) == ComparableJSON(will.payload))
        #expect(!link.will.shouldRetain && !will.retain && will.qos == 0)

        link.opened()
        guard case .subscribe(let filters) = link.nextOperation() else {
            Issue.record("the first packet must be SUBSCRIBE")
            return
        }
        #expect(filters == first[1].subscriptions?.map(\.topic))
        guard case .publish(let join) = link.nextOperation() else {
            Issue.record("the second packet must be PUBLISH")
            return
        }
        #expect(join.topic == first[2].topic)
        #expect(try ComparableJSON(join.payload) == ComparableJSON(#require(first[2].payload)))
        #expect(link.nextOperation() == nil)
        link.publicationSent()

        await manager.stop()
        guard case .publish(let farewell) = binding.leftWith.first, case .disconnect = binding.leftWith.last else {
            Issue.record("an orderly leave is a Deadvertise and DISCONNECT")
            return
        }
        #expect(farewell.topic == will.topic)
        #expect(farewell.payload == link.will.payload)
    }

    @Test func subscribesToWhatTheReferenceSubscribesTo() async throws {
        let lines = try Golden.lines("subscriptions.jsonl", as: Golden.Subscription.self)
        var checked = 0
        for line in lines where line.api != "join" {
            let isCross = line.note.contains("cross-namespacing")
            let binding = RecordingBinding()
            let manager = try CommunicationManager(
                identity: Identity(),
                options: CommunicationOptions(namespace: "golden", shouldEnableCrossNamespacing: isCross) { _ in
                    binding
                }
            )
            manager.start()
            let link = try #require(binding.link)
            link.opened()
            while link.nextOperation() != nil { link.publicationSent() }
            if let subscription = try subscribe(line.api, manager) {
                checked += 1
                var subscribed: [String] = []
                while let operation = link.nextOperation() {
                    if case .subscribe(let filters) = operation { subscribed += filters }
                }
                #expect(subscribed == line.subscribe, "\(line.api)")
                subscription.cancel()
                guard case .unsubscribe(let filter) = link.nextOperation() else {
                    Issue.record("\(line.api): not unsubscribed")
                    return
                }
                #expect([filter] == line.unsubscribeOnLastUnsubscribe, "\(line.api)")
            }
            await manager.stop()
        }
        #expect(checked >= 20)
    }

    /// Does what a recorded call of the reference did; nil for patterns that are not here.
    private func subscribe(_ api: String, _ manager: CommunicationManager) throws -> Subscription? {
        let parts = api.split(separator: "\"", omittingEmptySubsequences: false).map(String.init)
        let argument = parts.count > 1 ? parts[1] : ""
        switch parts[0] {
        case "observeAdvertiseWithCoreType(":
            return try manager.subscribe(.advertise(withCoreType: #require(CoreType(rawValue: argument)))) { _ in }
        case "observeAdvertiseWithObjectType(":
            return try manager.subscribe(.advertise(withObjectType: argument)) { _ in }
        case "observeDeadvertise()":
            return manager.subscribe(.deadvertise) { _ in }
        case "observeChannel(":
            return try manager.subscribe(.channel(argument)) { _ in }
        default:
            return nil
        }
    }

    @Test func refusesWhatTheReferenceRefuses() throws {
        let object = #"{"name":"n","coreType":"CoatyObject","objectType":"TYPE","objectId":"i"REST}"#
        func advertise(_ objectType: String, rest: String = "", behind: String = "") throws {
            let text = object.replacing("TYPE", with: objectType).replacing("REST", with: rest)
            _ = try AdvertiseEvent(payload: Payload(Array("{\"object\":\(text)\(behind)}".utf8)))
        }
        try advertise("com.example:T y-p")
        for objectType in ["a/b", "a+b", "a#b", "", "a\\u0000b"] {
            #expect(throws: PayloadError.self) { try advertise(objectType) }
        }
        #expect(throws: PayloadError.self) { try advertise("a", behind: #","privateData":null"#) }
        #expect(throws: PayloadError.self) { try advertise("a", behind: #","privateData":[]"#) }
        #expect(throws: PayloadError.invalid(pointer: "/object/parentObjectId", reason: "must be a non-empty string")) {
            try advertise("a", rest: #","parentObjectId":null"#)
        }
        #expect(throws: CommunicationError.invalidTopicLevel("a/b")) {
            try ChannelEvent.with(objects: [], channelId: "a/b")
        }
        #expect(throws: CommunicationError.invalidTopicLevel("a#")) { try EventObservation<ChannelEvent>.channel("a#") }
        #expect(throws: PayloadError.self) { try DeadvertiseEvent.with(objectIds: [CoatyUUID(wire: "")]) }
        for refused in [
            #"{"objectId":"x","objectTypes":["a"]}"#, "{}", #"{"coreTypes":["Foo"]}"#,
            #"{"objectTypes":["a"],"coreTypes":["Task"]}"#,
        ] {
            #expect(throws: PayloadError.self) { try DiscoverEvent(payload: Payload(Array(refused.utf8))) }
        }
        for taken in [#"{"externalId":"x","objectTypes":["a"],"coreTypes":["Task"]}"#, #"{"objectTypes":[]}"#] {
            _ = try DiscoverEvent(payload: Payload(Array(taken.utf8)))
        }
        #expect(throws: PayloadError.self) { try ResolveEvent(payload: Payload(Array("{}".utf8))) }
    }
}
