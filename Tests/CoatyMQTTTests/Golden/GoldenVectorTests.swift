import TestSupport
import Testing

@testable import Coaty
@testable import CoatyMQTT
@testable import CoatyTestSupport

/// Messages published by reference agents. Decoded and published again, they must be unchanged.
@Suite(.exclusive) struct GoldenVectorTests {
    @Test func publishesTheSameMessagesAsTheReference() async throws {
        let vectors = try Golden.lines("vectors.jsonl", as: Golden.Vector.self)
        var groups: [[Golden.Vector]] = []
        for vector in vectors {
            if let first = groups.last?.last, Self.areOneEvent(first, vector) {
                groups[groups.count - 1].append(vector)
            } else {
                groups.append([vector])
            }
        }
        var checked = 0
        for group in groups {
            let published = try await publish(group[0])
            #expect(
                published.map { Self.comparable($0.topic) } == group.map { Self.comparable($0.topic) },
                "\(group[0].note)"
            )
            for (message, vector) in zip(published, group) {
                checked += 1
                if MQTTTopic.isCoaty(vector.topic), vector.encoding == "utf8" {
                    let payload = try ComparableJSON(message.payload).without("isExternalRoute")
                    #expect(try payload == ComparableJSON(vector.payload).without("isExternalRoute"), "\(vector.note)")
                } else {
                    #expect(message.payload == vector.bytes, "\(vector.note)")
                }
            }
        }
        #expect(checked == vectors.count)
    }

    /// Returns whether two messages are the same event on its two topics.
    private static func areOneEvent(_ first: Golden.Vector, _ second: Golden.Vector) -> Bool {
        guard first.note == second.note, first.payload == second.payload, let one = EventAddress(topic: first.topic),
            let other = EventAddress(topic: second.topic), one.eventType == other.eventType
        else { return false }
        let isObjectType = { (topic: EventAddress) in topic.wireName?.hasPrefix(":") ?? false }
        return switch one.eventType {
        case .advertise: !isObjectType(one) && isObjectType(other)
        case .update: isObjectType(one) && !isObjectType(other)
        default: false
        }
    }

    /// Returns a topic without its correlation id, because requests get a new one.
    private static func comparable(_ topic: String) -> String {
        guard let parsed = EventAddress(topic: topic), parsed.eventType.isTwoWay else { return topic }
        return topic.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    }

    private func publish(_ vector: Golden.Vector) async throws -> [TopicBroker.Message] {
        let topic = EventAddress(topic: vector.topic)
        let broker = TopicBroker()
        // The topic of an IO value has the source's id in place of the agent's.
        let source = topic?.eventType == .ioValue ? nil : topic?.sourceId
        let manager = try CommunicationManager(
            identity: Identity(name: "Golden", objectId: source ?? CoatyUUID()),
            options: CommunicationOptions(namespace: topic?.namespace ?? "-") { _ in TopicBinding(broker: broker) }
        )
        manager.start()
        try await manager.untilOnline()
        let joined = try await broker.waitForMessages(1)
        let requests = DisposeBag()
        if let topic, topic.eventType == .ioValue {
            try manager.publishIoValue(vector, topic)
        } else if let topic {
            try manager.publish(Payload(vector.bytes), topic, requests)
        } else {
            try manager.publishRaw(.with(topic: vector.topic, payload: vector.bytes, shouldRetain: vector.retain))
        }
        broker.publish(topic: "end", payload: [])
        let published = try await broker.waitForMessages { $0.contains { $0.topic == "end" } }
        await manager.stop()
        // An agent that discovers identities also responds itself.
        return published.prefix { $0.topic != "end" }.dropFirst(joined.count).filter {
            EventAddress(topic: $0.topic)?.eventType == topic?.eventType
        }
    }
}

extension CommunicationManager {
    /// Decodes a recorded event into typed objects and publishes it.
    fileprivate func publish(_ payload: Payload, _ topic: EventAddress, _ requests: DisposeBag) throws {
        let correlationId = topic.correlationId ?? CoatyUUID()
        func respond<Event: CommunicationEvent>(_ event: Event) throws {
            _ = try Responder(manager: self).respond(Event.eventType, correlationId, event.payload, holding: nil)
        }
        switch topic.eventType {
        case .advertise:
            let data = try AdvertiseEvent(payload: payload, address: topic).data
            try publishAdvertise(.with(object: data.object, privateData: data.privateData))
        case .deadvertise:
            try publishDeadvertise(.with(objectIds: DeadvertiseEvent(payload: payload, address: topic).data.objectIds))
        case .channel:
            let data = try ChannelEvent(payload: payload, address: topic).data
            let channelId = try #require(topic.wireName)
            if let object = try data.object {
                try publishChannel(.with(object: object, channelId: channelId, privateData: data.privateData))
            } else {
                let objects = try #require(try data.objects)
                try publishChannel(.with(objects: objects, channelId: channelId, privateData: data.privateData))
            }
        case .associate:
            let data = try AssociateEvent(payload: payload, address: topic).data
            try publishAssociate(
                .with(
                    ioContextName: #require(topic.wireName),
                    ioSourceId: data.ioSourceId,
                    ioActorId: data.ioActorId,
                    associatingRoute: data.associatingRoute,
                    updateRate: data.updateRate
                )
            )
        case .discover:
            let asked = try DiscoverEvent(payload: payload, address: topic).data
            try publish(DiscoverEvent(payload: Payload(encoding: asked))) { _ in }.disposed(by: requests)
        case .query:
            let asked = try QueryEvent(payload: payload, address: topic).data
            // Coaty allows a single join condition as an object or in a list; a single object is sent as an object
            // again.
            let joins = payload.json["objectJoinConditions"] == nil ? nil : asked.objectJoinConditions
            let event =
                if let coreTypes = asked.coreTypes {
                    try QueryEvent.with(
                        coreTypes: coreTypes,
                        objectFilter: asked.objectFilter,
                        objectJoinConditions: joins
                    )
                } else {
                    try QueryEvent.with(
                        objectTypes: #require(asked.objectTypes),
                        objectFilter: asked.objectFilter,
                        objectJoinConditions: joins
                    )
                }
            try publish(event) { _ in }.disposed(by: requests)
        case .update:
            let data = try UpdateEvent(payload: payload, address: topic).data
            try publish(UpdateEvent.with(object: data.object)) { _ in }.disposed(by: requests)
        case .call:
            let data = try CallEvent(payload: payload, address: topic).data
            let operation = try #require(topic.wireName)
            let event =
                if let parameters = data.parameterArray {
                    try CallEvent.with(operation: operation, parameters: parameters, filter: data.filter)
                } else {
                    try CallEvent.with(
                        operation: operation,
                        parameters: data.parameterDictionary,
                        filter: data.filter
                    )
                }
            try publish(event) { _ in }.disposed(by: requests)
        case .resolve:
            let data = try ResolveEvent(payload: payload, address: topic).data
            if let object = try data.object {
                try respond(
                    ResolveEvent.with(
                        object: object,
                        relatedObjects: data.relatedObjects,
                        privateData: data.privateData
                    )
                )
            } else {
                let related = try #require(try data.relatedObjects)
                try respond(ResolveEvent.with(relatedObjects: related, privateData: data.privateData))
            }
        case .retrieve:
            let data = try RetrieveEvent(payload: payload, address: topic).data
            try respond(RetrieveEvent.with(objects: data.objects, privateData: data.privateData))
        case .complete:
            let data = try CompleteEvent(payload: payload, address: topic).data
            try respond(CompleteEvent.with(object: data.object, privateData: data.privateData))
        case .return:
            let data = try ReturnEvent(payload: payload, address: topic).data
            if let error = data.error {
                try respond(ReturnEvent.with(error: error, executionInfo: data.executionInfo))
            } else {
                try respond(ReturnEvent.with(result: #require(data.result), executionInfo: data.executionInfo))
            }
        case .ioValue:
            Issue.record("IO values are published by publishIoValue")
        }
    }

    /// Publishes a recorded value as an associated source.
    fileprivate func publishIoValue(_ vector: Golden.Vector, _ topic: EventAddress) throws {
        let isRaw = vector.encoding == "base64"
        let source = IoSource(valueType: "v", useRawIoValues: isRaw, name: "Source", objectId: topic.sourceId)
        let event =
            if isRaw {
                try IoValueEvent.with(ioSource: source, value: vector.bytes)
            } else {
                try IoValueEvent.with(ioSource: source, value: AnyCodable(Payload(vector.bytes).json))
            }
        _ = try session.publish([Publication(.ioRoute(vector.topic), payload: event.bytes)])
    }
}

extension ComparableJSON {
    /// Returns the object without a member.
    fileprivate func without(_ key: String) -> ComparableJSON {
        guard case .object(var members) = self else { return self }
        members[key] = nil
        return .object(members)
    }
}
