import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Packets with which agents join, subscribe and leave, compared with those of reference agents.
@Suite(.exclusive) struct GoldenWireTests {
    @Test func joinsAndLeavesAsTheReferenceDoes() async throws {
        let packets = try Golden.lines("wire.jsonl", as: Golden.Packet.self)
        let vectors = try Golden.lines("vectors.jsonl", as: Golden.Vector.self)
        // The recorded identities and IO nodes, from Advertise and Resolve events, by id.
        var recorded: [String: String] = [:]
        for vector in vectors {
            guard let type = EventAddress(topic: vector.topic)?.eventType, [.advertise, .resolve].contains(type),
                let object = try Payload(vector.bytes).json["object"], let id = object["objectId"]?.string
            else { continue }
            recorded[id] = String(decoding: object.bytes, as: UTF8.self)
        }
        let connects = packets.filter { $0.cmd == "connect" }
        #expect(connects.count == 18)
        for connect in connects {
            let will = try #require(connect.will)
            let topic = try #require(EventAddress(topic: will.topic))
            let ids = try DeadvertiseEvent(payload: Payload(Array(will.payload.utf8)), address: topic).data.objectIds
            let first = packets.filter { $0.step == connect.step && $0.clientId == connect.clientId }
            for packet in first where packet.topic?.contains("/ADV:") ?? false {
                // Two of the recorded agents have the same identity id with different names.
                let text = try #require(packet.payload)
                let object = try #require(try Payload(Array(text.utf8)).json["object"])
                recorded[object["objectId"]?.string ?? ""] = String(decoding: object.bytes, as: UTF8.self)
            }
            let objects = try ids.map { id in
                try PayloadCoder.decode(AnyCoatyObjectDecodable.self, from: #require(recorded[id.string])).object
            }
            try await check(connect, will, topic, objects, first)
        }
    }

    private func check(
        _ connect: Golden.Packet,
        _ will: Golden.Packet.Will,
        _ topic: EventAddress,
        _ objects: [CoatyObject],
        _ packets: [Golden.Packet]
    ) async throws {
        let binding = RecordingBinding()
        let isCross = topic.namespace == "other ns.1"
        let nodes = objects.compactMap { $0 as? IoNode }
        let manager = try CommunicationManager(
            identity: #require(objects[0] as? Identity),
            ioNodes: nodes,
            options: CommunicationOptions(namespace: topic.namespace, shouldEnableCrossNamespacing: isCross) { _ in
                binding
            }
        )
        manager.start()
        let link = try #require(binding.link)
        #expect(link.clientId == connect.clientId)
        let ownWill = try #require(link.will)
        #expect(ownWill.topic == will.topic)
        #expect(try ComparableJSON(ownWill.payload) == ComparableJSON(will.payload))
        #expect(!will.retain && will.qos == 0)

        link.opened()
        guard case .subscribe(let filters, _) = link.nextOperation() else {
            Issue.record("the first packet must be SUBSCRIBE")
            return
        }
        // The recorded agents also observe other events. Their filters include those of the agent itself, in the same
        // order.
        let subscribed = packets.first { $0.cmd == "subscribe" }?.subscriptions?.map(\.topic) ?? []
        #expect(subscribed.filter(filters.contains) == filters, "\(connect.step)")
        #expect(subscribed.allSatisfy { filters.contains($0) || !$0.contains("/DSC/") && !$0.contains("/ASC:") })

        var joins: [TopicBroker.Message] = []
        while let operation = link.nextOperation() {
            guard case .publish(let publication) = operation else { break }
            joins.append(publication)
            link.publicationSent()
        }
        #expect(joins.count == 1 + nodes.count)
        let isJoin = { (topic: String) in topic.contains("/ADV:Identity/") || topic.contains("/ADV:IoNode/") }
        let advertised = packets.filter { $0.cmd == "publish" && isJoin($0.topic ?? "") }
        // A reference agent with several IO nodes advertises only the last of them, so routers miss the others. Here,
        // all nodes are advertised.
        #expect(advertised.count == min(joins.count, 2))
        for packet in advertised {
            let payload = try ComparableJSON(#require(packet.payload))
            #expect(try joins.contains { try $0.topic == packet.topic && ComparableJSON($0.payload) == payload })
        }

        await manager.stop()
        guard case .publish(let farewell) = binding.leftWith.first, case .disconnect = binding.leftWith.last else {
            Issue.record("expected a Deadvertise event and a DISCONNECT")
            return
        }
        #expect(farewell.topic == will.topic)
        #expect(farewell.payload == ownWill.payload)
    }

    @Test func subscribesToTheSameFiltersAsTheReference() async throws {
        let lines = try Golden.lines("subscriptions.jsonl", as: Golden.Subscription.self)
        var checked = 0
        // Joins are checked by the other test, packet by packet.
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
            let subscriptions = try subscribe(line.api, manager)
            var subscribed: [String] = []
            while let operation = link.nextOperation() {
                if case .subscribe(let filters, _) = operation { subscribed += filters }
                if case .publish = operation { link.publicationSent() }
            }
            #expect(Set(subscribed.map(Self.comparable)) == Set(line.subscribe.map(Self.comparable)), "\(line.api)")
            for subscription in subscriptions { subscription.end() }
            var unsubscribed: [String] = []
            while let operation = link.nextOperation() {
                if case .unsubscribe(let filter) = operation { unsubscribed.append(filter) }
            }
            // The reference keeps the subscription of a request whose stream is not observed, and that of two observers
            // when one of them ends.
            if !line.api.contains("without subscribing"), !line.api.contains("unsubscribe one") {
                #expect(
                    Set(unsubscribed.map(Self.comparable))
                        == Set((line.unsubscribeOnLastUnsubscribe ?? []).map(Self.comparable)),
                    "\(line.api)"
                )
            }
            checked += 1
            await manager.stop()
        }
        #expect(checked == lines.count { $0.api != "join" })
    }

    /// Returns a topic filter without the correlation id, which is random; this makes the two filters of an update
    /// equal.
    private static func comparable(_ filter: String) -> String {
        let levels = filter.split(separator: "/", omittingEmptySubsequences: false)
        guard levels.count == 6, levels[5].count == 36 else { return filter }
        return levels.dropLast().joined(separator: "/")
    }

    /// Makes the subscriptions of a recorded call of the reference.
    private func subscribe(_ api: String, _ manager: CommunicationManager) throws -> [any Cancellable] {
        let parts = api.split(separator: "\"", omittingEmptySubsequences: false).map(String.init)
        let argument = parts.count > 1 ? parts[1] : ""
        func object(_ coreType: CoreType, _ objectType: String) -> CoatyObject {
            CoatyObject(coreType: coreType, objectType: objectType, objectId: .init(), name: "n")
        }
        switch parts[0] {
        case "observeAdvertiseWithCoreType(":
            return [try manager.subscribe(.advertise(withCoreType: #require(CoreType(rawValue: argument)))) { _ in }]
        case "observeAdvertiseWithObjectType(":
            return [try manager.subscribe(.advertise(withObjectType: argument)) { _ in }]
        case "observeDeadvertise()": return [manager.subscribe(.deadvertise) { _ in }]
        case "observeChannel(": return [try manager.subscribe(.channel(argument)) { _ in }]
        case "observeChannel twice, unsubscribe one":
            return try (0..<2).map { _ in try manager.subscribe(.channel("dup")) { _ in } }
        case "observeDiscover() (already subscribed at join)": return [manager.subscribe(.discover) { _ in }]
        case "observeQuery()": return [manager.subscribe(.query) { _ in }]
        case "observeUpdateWithCoreType(":
            return [try manager.subscribe(.update(withCoreType: #require(CoreType(rawValue: argument)))) { _ in }]
        case "observeUpdateWithObjectType(":
            return [try manager.subscribe(.update(withObjectType: argument)) { _ in }]
        case "observeCall(":
            let context = parts[2].contains("context") ? object(.CoatyObject, "com.example.Context") : nil
            return [try manager.subscribe(.call(operation: argument, context: context)) { _ in }]
        case "observeRaw(":
            guard !argument.hasPrefix("coaty/") else {
                #expect(throws: CommunicationError.invalidTopic(argument)) {
                    try manager.subscribe(rawTopic: argument) { _ in }
                }
                return []
            }
            return [try manager.subscribe(rawTopic: argument) { _ in }]
        case "observeIoState(source)/observeIoValue(actor): no subscription by themselves":
            return [manager.subscribe(ioStateOf: .init()) { _ in }, manager.subscribe(ioValuesOf: .init()) { _ in }]
        case "publishDiscover(...)", "publishDiscover(...) without subscribing the observable":
            return [try manager.publish(DiscoverEvent.with(externalId: "nobody")) { _ in }]
        case "publishQuery(...)": return [try manager.publish(QueryEvent.with(objectTypes: ["nobody"])) { _ in }]
        case "publishCall(": return [try manager.publish(CallEvent.with(operation: argument)) { _ in }]
        case "publishUpdate(core object)":
            return [try manager.publish(UpdateEvent.with(object: object(.CoatyObject, "coaty.CoatyObject"))) { _ in }]
        case "publishUpdate(custom object type)":
            return [try manager.publish(UpdateEvent.with(object: object(.CoatyObject, "com.example.None"))) { _ in }]
        default:
            Issue.record("unknown: \(api)")
            return []
        }
    }
}

private protocol Cancellable { func end() }

extension Subscription: Cancellable {
    fileprivate func end() { cancel() }
}

extension PendingRequest: Cancellable {
    fileprivate func end() { cancel() }
}
