import CoatyMQTT
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Two-way events between agents, on an in-memory broker and on mosquitto.
@Suite(.exclusive) struct TwoWayTests {
    private func agent(_ broker: TopicBroker, namespace: String = "-", isCross: Bool = false) throws
        -> CommunicationManager
    {
        try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions(namespace: namespace, shouldEnableCrossNamespacing: isCross) { _ in
                TopicBinding(broker: broker)
            }
        )
    }

    private func job(_ name: String, objectType: String = "com.example.Job") -> CoatyObject {
        CoatyObject(coreType: .CoatyObject, objectType: objectType, objectId: .init(), name: name)
    }

    @Test func defersRequestsUntilOnline() async throws {
        let broker = TopicBroker()
        let agent = try agent(broker)
        let answers = try agent.publishDiscover(.with(objectId: agent.identityId))
        agent.start()
        let sourceId = try await withPatience {
            for await event in answers { return event.sourceId }
            return nil
        }
        #expect(sourceId == agent.identityId)
        await agent.stop()
    }

    @Test func endsAtTheTimeLimitAndLeavesNothing() async throws {
        let broker = TopicBroker()
        let agent = try agent(broker)
        agent.start()
        try await agent.untilOnline()
        let answers = try agent.publishQuery(.with(coreTypes: [.Task]), timeLimit: .milliseconds(10))
        try await withPatience { for await _ in answers {} }
        #expect(agent.session.core.withLock { $0.subscriptions.count } == 1, "only the agent's own subscription")
        await agent.stop()
    }

    @Test func mismatchedAnswersAreRefusedOnBothSides() async throws {
        let broker = TopicBroker()
        let asking = try agent(broker)
        let answering = try agent(broker)
        let refused = Recorder<Bool>()
        let right = CoatyUUID()
        let updates = answering.subscribe(.update(withCoreType: .CoatyObject)) { event in
            let other = self.job("other")
            do {
                try event.complete(.with(object: other))
            } catch {
                refused.append(error is PayloadError)
            }
            // A responder that does not check its response sends it anyway.
            guard let payload = try? CompleteEvent.with(object: other).payload, let id = event.correlationId else {
                return
            }
            _ = try? event.responder?.respond(.complete, id, payload, holding: nil)
            let fitting = self.job("fitting")
            fitting.objectId = right
            _ = try? event.complete(.with(object: fitting))
        }
        asking.start()
        answering.start()
        _ = try await broker.waitForMessages(2)
        let object = job("asked")
        object.objectId = right
        let update = try UpdateEvent.with(object: object)
        let name = try await withPatience {
            for await event in try asking.publishUpdate(update) { return try event.data.object.name }
            return ""
        }
        #expect(name == "fitting")
        #expect(refused.values.first == true)
        updates.cancel()
        await asking.stop()
        await answering.stop()
    }

    @Test func agentObservingBothUpdateTopicsCountsOnce() async throws {
        let broker = TopicBroker()
        let asking = try agent(broker)
        let answering = try agent(broker)
        let complete = { @Sendable (event: UpdateEvent) in
            guard let object = try? event.data.object else { return }
            _ = try? event.complete(.with(object: object))
        }
        let subscriptions = [
            answering.subscribe(.update(withCoreType: .CoatyObject), handler: complete),
            try answering.subscribe(.update(withObjectType: "com.example.Job"), handler: complete),
        ]
        let seen = Recorder<CoatyUUID?>()
        asking.start()
        answering.start()
        _ = try await broker.waitForMessages(2)
        let request = try asking.publish(UpdateEvent.with(object: job("j"))) { seen.append($0.sourceId) }
        _ = try await broker.waitForMessages { $0.count { $0.topic.contains("/CPL/") } == 2 }
        broker.publish(topic: "end", payload: [])
        _ = try await broker.waitForMessages { $0.contains { $0.topic == "end" } }
        #expect(seen.values == [answering.identityId])
        request.cancel()
        withExtendedLifetime(subscriptions) {}
        await asking.stop()
        await answering.stop()
    }

    /// An agent may give several answers to an update of a custom type, which is sent with two names.
    @Test func severalCompleteEventsOfOneAgentAreDelivered() async throws {
        let broker = TopicBroker()
        let asking = try agent(broker)
        let answering = try agent(broker)
        let complete = { @Sendable (event: UpdateEvent) in
            for step in ["first", "second", "third"] {
                guard let object = try? event.data.object else { return }
                object.name = step
                _ = try? event.complete(.with(object: object))
            }
        }
        let subscriptions = [
            answering.subscribe(.update(withCoreType: .CoatyObject), handler: complete),
            try answering.subscribe(.update(withObjectType: "com.example.Job"), handler: complete),
        ]
        let seen = Recorder<String>()
        asking.start()
        answering.start()
        _ = try await broker.waitForMessages(2)
        let request = try asking.publish(UpdateEvent.with(object: job("j"))) { event in
            seen.append((try? event.data.object.name) ?? "")
        }
        _ = try await broker.waitForMessages { $0.count { $0.topic.contains("/CPL/") } == 6 }
        broker.publish(topic: "end", payload: [])
        _ = try await broker.waitForMessages { $0.contains { $0.topic == "end" } }
        #expect(seen.values == ["first", "second", "third"])
        request.cancel()
        withExtendedLifetime(subscriptions) {}
        await asking.stop()
        await answering.stop()
    }

    /// As in other implementations: an observer with a context gets only calls whose filter matches it, and none
    /// without filter; an observer without a context gets all.
    @Test func callsReachTheObserversWhoseContextMatches() async throws {
        let agent = try agent(TopicBroker())
        let floor = CoatyObject(coreType: .CoatyObject, objectType: "com.example.Floor", objectId: .init(), name: "7")
        let seen = Recorder<String>()
        let observations = [
            try agent.subscribe(.call(operation: "o", context: floor)) {
                seen.append("context \($0.data.filter == nil)")
            },
            try agent.subscribe(.call(operation: "o")) { seen.append("all \($0.data.filter == nil)") },
        ]
        agent.start()
        try await agent.untilOnline()
        func filter(_ name: String) throws -> ContextFilter {
            try ContextFilter(conditions: .property("name", .equals(.string(name))))
        }
        let requests = try [nil, filter("7"), filter("8")].map { filter in
            try agent.publish(CallEvent.with(operation: "o", filter: filter)) { _ in }
        }
        #expect(try await seen.wait(for: 4) == ["all true", "context false", "all false", "all false"])
        withExtendedLifetime(requests) {}
        for observation in observations { observation.cancel() }
        await agent.stop()
    }

    @Test func callsAcrossNamespaces() async throws {
        let broker = TopicBroker()
        let asking = try agent(broker, namespace: "one", isCross: true)
        let answering = try agent(broker, namespace: "two", isCross: true)
        let calls = try answering.subscribe(.call(operation: "com.example.add")) { event in
            let numbers = event.data.parameterArray?.compactMap { $0.value as? Int } ?? []
            if numbers.count < 2 {
                _ = try? event.returnEvent(.with(error: ReturnError(code: .invalidParameters)))
            } else {
                _ = try? event.returnEvent(.with(result: .init(numbers.reduce(0, +))))
            }
        }
        asking.start()
        answering.start()
        _ = try await broker.waitForMessages(2)
        func call(_ parameters: [AnyCodable]) async throws -> ReturnEventData? {
            let event = try CallEvent.with(operation: "com.example.add", parameters: parameters)
            return try await withPatience {
                for await event in try asking.publishCall(event) { return event.data }
                return nil
            }
        }
        #expect(try await call([1, 2, 3])?.result == 6)
        #expect(try await call([])?.error == ReturnError(code: -32602, message: "Invalid params"))
        calls.cancel()
        await asking.stop()
        await answering.stop()
    }

    @Test func rawWildcardDoesNotCrossNamespaces() async throws {
        let broker = TopicBroker()
        let agent = try agent(broker, namespace: "one")
        let seen = Recorder<String>()
        let raw = try agent.subscribe(rawTopic: "#") { seen.append($0.topic) }
        let channel = try agent.subscribe(.channel("c")) { seen.append((try? $0.data.object?.name) ?? "") }
        agent.start()
        _ = try await broker.waitForMessages(1)
        for namespace in ["two", "one"] {
            let payload = try ChannelEvent.with(object: job(namespace), channelId: "c").payload.bytes
            broker.publish(topic: "coaty/3/\(namespace)/CHN:c/x", payload: payload)
        }
        broker.publish(topic: "end", payload: [])
        #expect(try await seen.wait(for: 2) == ["one", "end"])
        withExtendedLifetime((raw, channel)) {}
        await agent.stop()
    }

    @Test(arguments: ["$share/g/t", "$SYS/x", "a/+", "coaty/3/-/ADV:Task/x", String(repeating: "/", count: 200)])
    func invalidRoutesAreNotIoRoutes(_ route: String) {
        #expect(!TopicBinding(broker: TopicBroker()).isIoRoute(route))
    }

    @Test func carriesRawBytesByWildcard() async throws {
        let broker = TopicBroker()
        let agent = try agent(broker)
        let seen = Recorder<String>()
        let raw = try agent.subscribe(rawTopic: "plant/+/x/#") { seen.append("\($0.topic) \($0.payload)") }
        agent.start()
        for topic in ["plant/1/x", "plant/1/y", "other"] {
            try agent.publishRaw(.with(topic: topic, payload: [0xFF]))
        }
        try agent.publishRaw(.with(topic: "plant/2/x/y", payload: "ä"))
        #expect(try await seen.wait(for: 2) == ["plant/1/x [255]", "plant/2/x/y [195, 164]"])
        for topic in ["", "a/#", "a/+", "coaty/3/-/ADV:Task/x", "a\u{0}"] {
            #expect(throws: CommunicationError.invalidTopic(topic)) {
                try agent.publishRaw(.with(topic: topic, payload: []))
            }
        }
        for filter in ["", "a#", "a/#/b", "a/b+", "$share/g/t"] {
            #expect(throws: CommunicationError.invalidTopic(filter)) { try agent.subscribe(rawTopic: filter) { _ in } }
        }
        raw.cancel()
        await agent.stop()
    }

    @Test func answersAThousandRequestsInFlightAndLeavesNoSubscription() async throws {
        let broker = try BrokerProcess(extraConfiguration: ["log_type all"])
        defer { broker.stop() }
        let options = MQTTClientOptions(host: "127.0.0.1", port: broker.port)
        let agents = try (0..<4).map { index in
            try CommunicationManager(
                identity: Identity(name: "\(index)"),
                options: CommunicationOptions(mqttClientOptions: options)
            )
        }
        let responders = agents.dropFirst()
        let answering = responders.map { agent in
            agent.subscribe(.query) { event in
                let type = event.data.objectTypes?.first ?? ""
                do {
                    try event.retrieve(.with(objects: [self.job("answer", objectType: type)]))
                } catch {
                    Issue.record(error)
                }
            }
        }
        for agent in agents { agent.start() }
        for agent in agents {
            try await agent.untilOnline()
            // A response with its identity shows that its earlier subscriptions are active.
            for await _ in try agent.publishDiscover(.with(objectId: agent.identityId)) { break }
        }
        let asking = agents[0]
        let count = 1000
        let answered = Recorder<String>()
        let requests = try (0..<count).map { index in
            try asking.publish(QueryEvent.with(objectTypes: ["com.example.\(index)"])) { event in
                answered.append("\(index) \(event.sourceId?.string ?? "")")
            }
        }
        let answers = try await answered.wait(for: count * responders.count)
        #expect(Set(answers).count == count * responders.count)
        for request in requests { request.cancel() }
        try waitUntil("the broker has forgotten all response subscriptions") {
            let subscriptions = broker.responseSubscriptions(of: asking)
            return subscriptions.made >= count && subscriptions.standing == 0
        }
        #expect(asking.session.core.withLock { $0.subscriptions.count } == 1, "only the agent's own subscription")
        for agent in agents { await agent.stop() }
        withExtendedLifetime(answering) {}
    }
}

extension BrokerProcess {
    /// Returns how many response subscriptions of an agent the broker's log contains, and how many of them are active.
    fileprivate func responseSubscriptions(of agent: CommunicationManager) -> (made: Int, standing: Int) {
        var made = 0
        var standing: Set<Substring> = []
        for line in log.split(separator: "\n") where line.contains("/RTV/+/") {
            // `<time>: <client> 0 <filter>` reports a subscription, `<time>: <client> <filter>` its end.
            let words = line.split(separator: " ")
            guard let filter = words.last, words.dropFirst().first?.hasPrefix("Coaty") ?? false else { continue }
            if words.count == 4 {
                made += 1
                standing.insert(filter)
            } else {
                standing.remove(filter)
            }
        }
        return (made, standing.count)
    }
}
