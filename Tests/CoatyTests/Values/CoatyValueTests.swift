import CoatyMQTT
import Foundation
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

private struct Job: CoatyContent, Equatable {
    static let objectType = "com.example.values.Job"
    var urgency: Int
    var tags: [String]?
}

private struct Alarm: CoatyContent {
    static let objectType = "com.example.values.Alarm"
    static let coreType = CoreType.Task
    var level: String
}

private enum Plain: String, CoatyContent {
    static let objectType = "com.example.values.Plain"
    case a
}

private struct Versioned: CoatyContent, Equatable {
    static let objectType = "com.example.values.Versioned"
    let schema: Int

    init() { schema = 1 }

    init(from decoder: any Decoder) { schema = 1 }
}

private struct Whole: CoatyContent {
    static let objectType = "com.example.values.Whole"
    var members: [String: AnyCodable]

    init(members: [String: AnyCodable]) { self.members = members }

    init(from decoder: any Decoder) throws {
        guard case .object(let members) = try AnyCodable(from: decoder) else { throw CancellationError() }
        self.members = members
    }

    func encode(to encoder: any Encoder) throws { try members.encode(to: encoder) }
}

private struct Dated: CoatyContent, Equatable {
    static let objectType = "com.example.values.Dated"
    var date: Date
}

private struct Sum: Codable {
    let a: Int
    let b: Int
}

/// Objects as values, and the methods that publish and observe them.
@Suite(.exclusive) struct CoatyValueTests {
    private func agent(_ broker: TopicBroker = TopicBroker()) async throws -> CommunicationManager {
        let agent = try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions { _ in TopicBinding(broker: broker) }
        )
        agent.start()
        try await agent.untilOnline()
        return agent
    }

    @Test func propertiesOfCoreAndContentAreProperties() {
        var job = CoatyValue(Job(urgency: 1), name: "Repair")
        job.urgency += 1
        job.name = "Replace"
        job.externalId = "7"
        #expect(job.content == Job(urgency: 2) && job.core.name == "Replace" && job.core.externalId == "7")
        #expect(job.objectType == Job.objectType && job.coreType == .CoatyObject)
    }

    @Test func otherDecodersGiveTheSameValue() throws {
        let text = #"""
            {"coreType":"CoatyObject","name":"n","objectId":"o","objectType":"com.example.values.Job",\#
            "rating":{"stars":[5,18446744073709551615,0.5]},"tags":["a"],"urgency":3}
            """#
        let job: CoatyValue<Job> = try PayloadCoder.decode(from: text)
        #expect(try JSONDecoder().decode(CoatyValue<Job>.self, from: Data(text.utf8)) == job)
        #expect(Array(job.unknown.keys) == ["rating"])
        let object = try JSONDecoder().decode(AnyCoatyObjectDecodable.self, from: Data(text.utf8)).object
        #expect(object.custom["rating"] == job.unknown["rating"] && object.custom["urgency"] == 3)
    }

    @Test func encodedPropertiesAreKnown() throws {
        let value = CoatyValue(Versioned(), name: "n")
        #expect(try PayloadCoder.decode(CoatyValue<Versioned>.self, from: PayloadCoder.encode(value)) == value)
        let whole = CoatyValue(Whole(members: ["old": 3]), name: "n")
        #expect(try PayloadCoder.decode(CoatyValue<Whole>.self, from: PayloadCoder.encode(whole)).unknown == [:])
    }

    /// The strategies of Foundation's coders apply.
    @Test func otherCodersKeepTheirStrategies() throws {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        let value = CoatyValue(Dated(date: Date(timeIntervalSince1970: 1)), name: "n")
        let data = try encoder.encode(value)
        #expect(String(decoding: data, as: UTF8.self).contains("1970-01-01T00:00:01Z"))
        #expect(try decoder.decode(CoatyValue<Dated>.self, from: data) == value)
    }

    @Test func unknownPropertiesAreKept() throws {
        let text = #"""
            {"coreType":"CoatyObject","locationId":"l","name":"n","objectId":"o","objectType":"com.example.values.Job",\#
            "rating":{"stars":[5]},"tags":["a"],"urgency":3}
            """#
        var job: CoatyValue<Job> = try PayloadCoder.decode(from: text)
        #expect(job.unknown == ["rating": ["stars": [5]]])
        #expect(try PayloadCoder.encode(job) == text)
        job.unknown["urgency"] = 99
        #expect(try PayloadCoder.decode(CoatyValue<Job>.self, from: PayloadCoder.encode(job)).urgency == 3)
    }

    @Test(arguments: [
        #"{"coreType":"CoatyObject","name":"n","objectId":"o","objectType":"other","urgency":3}"#,
        #"{"coreType":"Task","name":"n","objectId":"o","objectType":"com.example.values.Job","urgency":3}"#,
        #"{"coreType":"CoatyObject","name":"n","objectId":"o","objectType":"com.example.values.Job"}"#,
    ])
    func otherObjectsAreNotDecoded(text: String) {
        #expect(throws: DecodingError.self) { try PayloadCoder.decode(CoatyValue<Job>.self, from: text) }
    }

    @Test func advertisedObjectsArriveAndOthersAreSkipped() async throws {
        let agent = try await agent()
        let jobs = try agent.advertised(Job.self)
        let job = CoatyValue(Job(urgency: 5), name: "Repair")
        // Without urgency.
        let broken = CoatyObject(coreType: .CoatyObject, objectType: Job.objectType, objectId: .init(), name: "broken")
        try agent.publishAdvertise(.with(object: broken))
        try agent.publishAdvertise(.with(object: job))
        let received = try await first(of: jobs)
        #expect(received == job)
        await agent.stop()
    }

    @Test func objectsOnAChannelArrive() async throws {
        let agent = try await agent()
        let jobs = try agent.objects(Job.self, onChannel: "jobs")
        try agent.publishChannel(.with(object: CoatyValue(Job(urgency: 5), name: "Repair"), channelId: "jobs"))
        #expect(try await first(of: jobs).urgency == 5)
        await agent.stop()
    }

    /// The core type has its own required properties, which the content adds.
    @Test func objectsThatAreNotValidAreNotPublished() throws {
        #expect(throws: PayloadError.self) {
            try AdvertiseEvent.with(object: CoatyValue(Alarm(level: "high"), name: "Fire"))
        }
    }

    @Test func discoveredObjectsAreThoseOfTheAnsweringAgents() async throws {
        let broker = TopicBroker()
        let (asking, answering) = (try await agent(broker), try await agent(broker))
        let jobs = [1, 2].map { CoatyValue(Job(urgency: $0), name: "Job \($0)") }
        answering.answerDiscover { jobs }
        var found: [Int] = []
        for try await job in try asking.discover(Job.self).prefix(2) { found.append(job.urgency) }
        #expect(found == [1, 2])
        let one = try asking.publishDiscover(.with(objectId: jobs[1].objectId))
        #expect(try await first(of: one).payload.json["object"]?["name"]?.string == "Job 2")
        let others = try asking.discover(Alarm.self, timeLimit: .milliseconds(20))
        for try await _ in others { Issue.record("an object of another type") }
        #expect(others.events.end == .timeLimit)
        await asking.stop()
        await answering.stop()
    }

    @Test func refusedSubscriptionsThrow() async throws {
        let binding = RecordingBinding()
        let agent = try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions { _ in binding }
        )
        agent.start()
        let link = try #require(binding.link)
        link.opened()
        link.settle()
        let jobs = try agent.advertised(Job.self)
        for (filters, ticket) in link.takeSubscriptions() { link.subscribed(ticket, refused: filters) }
        await #expect(throws: SubscriptionRefused()) { for try await _ in jobs {} }
        await agent.stop()
    }

    // MARK: - Calls

    @Test func callsReturnTheResult() async throws {
        let agent = try await agent()
        try agent.answer("add") { (sum: Sum) in sum.a + sum.b }
        try agent.answer("list") { (numbers: [Int]) in numbers.reversed() as [Int] }
        let sum: Int = try await agent.call("add", Sum(a: 1, b: 2), timeout: .seconds(60))
        #expect(sum == 3)
        #expect(try await agent.call("list", [1, 2], timeout: .seconds(60)) == [2, 1])
        await agent.stop()
    }

    @Test func errorsOfTheHandlerReachTheCallerAndTheServiceGoesOn() async throws {
        let agent = try await agent()
        try agent.answer("divide") { (numbers: [Int]) throws(ReturnError) -> Int in
            guard numbers[1] != 0 else { throw ReturnError(code: 7, message: "division by zero") }
            return numbers[0] / numbers[1]
        }
        await #expect { try await agent.call("divide", [1, 0], timeout: .seconds(60)) as Int } throws: { error in
            guard case CallError.failed(let error) = error else { return false }
            return error == ReturnError(code: 7, message: "division by zero")
        }
        await #expect { try await agent.call("divide", ["a", "b"], timeout: .seconds(60)) as Int } throws: { error in
            guard case CallError.failed(let error) = error else { return false }
            return error.code == -32602 && error.message.hasSuffix("at 0")
        }
        await #expect { try await agent.call("divide", [4, 2], timeout: .seconds(60)) as String } throws: { error in
            if case CallError.unreadableResult = error { true } else { false }
        }
        #expect(try await agent.call("divide", [4, 2], timeout: .seconds(60)) == 2)
        await agent.stop()
    }

    @Test func callsThatNobodyAnswersTimeOut() async throws {
        let agent = try await agent()
        await #expect { try await agent.call("none", [1], timeout: .milliseconds(5)) as Int } throws: { error in
            if case CallError.timeout = error { true } else { false }
        }
        let calling = Task { try await agent.call("none", [1], timeout: .seconds(600)) as Int }
        calling.cancel()
        await #expect { try await calling.value } throws: { if case CallError.cancelled = $0 { true } else { false } }
        let lost = Task { try await agent.call("none", [1], timeout: .seconds(600)) as Int }
        try await withPatience {
            while agent.session.core.withLock({ $0.subscriptions.count }) < 2 { await Task.yield() }
        }
        await agent.stop()
        await #expect { try await lost.value } throws: { if case CallError.disconnected = $0 { true } else { false } }
    }

    @Test func callsAreNeverDeferred() async throws {
        let broker = TopicBroker()
        let agent = try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions { _ in TopicBinding(broker: broker) }
        )
        await #expect { try await agent.call("add", [1], timeout: .seconds(60)) as Int } throws: { error in
            guard case CallError.notSent(let cause) = error else { return false }
            return cause as? CommunicationError == .offline
        }
        agent.start()
        try await agent.untilOnline()
        await agent.stop()
        #expect(!broker.published.contains { $0.topic.contains("/CLL") })
    }

    @Test func parametersMustBeAnObjectOrAnArray() async throws {
        let agent = try await agent()
        await #expect { try await agent.call("add", 1, timeout: .seconds(60)) as Int } throws: { error in
            guard case CallError.notSent(let cause) = error else { return false }
            return cause is PayloadError
        }
        await agent.stop()
    }

    @Test func resultsThatCanNotBeEncodedAreErrors() async throws {
        let agent = try await agent()
        try agent.answer("divide") { (numbers: [Double]) in numbers[0] / numbers[1] }
        await #expect { try await agent.call("divide", [1, 0], timeout: .seconds(60)) as Double } throws: { error in
            guard case CallError.failed(let error) = error else { return false }
            return error.code == -32603
        }
        await agent.stop()
    }

    /// Another agent can't keep a cancelled service alive by calling it.
    @Test func cancelledServicesEndAlthoughCallsAreWaiting() async throws {
        let agent = try await agent()
        let handled = Recorder<Int>()
        let service = try agent.answer("next") { (number: [Int]) in
            handled.append(number[0])
            if number[0] == 0 { try? await Task.sleep(for: .seconds(600)) }
            return number[0]
        }
        let requests = try (0..<200).map {
            try agent.publish(CallEvent.with(operation: "next", parameters: [.init($0 / 100)])) { _ in }
        }
        try await withPatience {
            while handled.values.count < CommunicationManager.maximumConcurrentCalls { await Task.yield() }
        }
        service.cancel()
        try await withPatience { await service.value }
        #expect(handled.values.count < 200)
        withExtendedLifetime(requests) {}
        await agent.stop()
    }

    @Test func emptyIdsSelectNothing() async throws {
        let agent = try await agent()
        agent.answerDiscover { [CoatyValue(Job(urgency: 1), name: "Repair")] }
        let answers = try agent.publishDiscover(.with(externalId: ""), timeLimit: .milliseconds(50))
        for await _ in answers { Issue.record("an object without external id") }
        await agent.stop()
    }

    @Test func contentThatIsNoObjectIsNotEncoded() {
        #expect(throws: EncodingError.self) { try PayloadCoder.encode(CoatyValue(Plain.a, name: "n")) }
    }

    /// More calls than are handled at the same time.
    @Test func manyCallsAreAnswered() async throws {
        let agent = try await agent()
        try agent.answer("next") { (number: [Int]) in
            await Task.yield()
            return number[0] + 1
        }
        let count = 3 * CommunicationManager.maximumConcurrentCalls
        let results = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<count {
                group.addTask { try await agent.call("next", [number], timeout: .seconds(60)) }
            }
            return try await group.reduce(into: Set<Int>()) { $0.insert($1) }
        }
        #expect(results == Set(1...count))
        await agent.stop()
    }
}
