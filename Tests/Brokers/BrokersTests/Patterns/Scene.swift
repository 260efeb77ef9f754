import Coaty
import Foundation
import Testing

/// Two agents on the ends of a route.
struct Scene: Sendable {
    /// The agent that publishes or sends requests.
    let sender: CommunicationManager
    /// The agent that observes or responds.
    let receiver: CommunicationManager

    /// Creates the agents; ``connect()`` starts them.
    init(_ route: Route) throws {
        sender = try makeAgent(route.senderOptions)
        receiver = try makeAgent(route.receiverOptions)
    }

    /// Starts both agents, and returns when an event of each has reached the other.
    ///
    /// A node of a cluster may acknowledge a subscription before the other nodes know it. After this call, both nodes
    /// know all earlier subscriptions of the agents.
    func connect() async throws {
        let agents = [sender, receiver]
        let topic = "barrier/\(UUID().uuidString)"
        let received = agents.map { _ in ReceivedValues<String>() }
        let subscriptions = try zip(agents, received).map { agent, received in
            try agent.subscribe(rawTopic: topic) { received.append(String(decoding: $0.payload, as: UTF8.self)) }
        }
        for agent in agents { agent.start() }
        try await eventually("each agent receives from the other") {
            guard agents.allSatisfy(\.isOnline) else { return false }
            for agent in agents { try agent.publishRaw(.with(topic: topic, payload: agent.identityId.string)) }
            return received.allSatisfy { log in agents.allSatisfy { log.values.contains($0.identityId.string) } }
        }
        for subscription in subscriptions { subscription.cancel() }
    }

    /// Stops both agents.
    func end() async {
        await sender.stop()
        await receiver.stop()
    }

    /// Checks that the receiver gets an event of the sender once.
    ///
    /// - Parameters:
    ///   - observation: the observation of the receiver.
    ///   - describe: returns a description of an event for the comparison; nil for an event that does not count.
    ///   - expected: the expected description.
    ///   - publish: publishes the event.
    func check<Event>(
        _ observation: EventObservation<Event>,
        _ describe: @escaping @Sendable (Event) throws -> String?,
        gives expected: String,
        publish: (CommunicationManager) throws -> Void
    ) async throws {
        let received = ReceivedValues<String>()
        let subscription = receiver.subscribe(observation) { event in
            do {
                if let text = try describe(event) { received.append(text) }
            } catch {
                received.append("\(error)")
            }
        }
        defer { subscription.cancel() }
        try await connect()
        try publish(sender)
        try await eventually("the event arrives", within: 10, details: { "\(received.values)" }) { received.count > 0 }
        #expect(received.values == [expected])
    }

    /// Checks that the sender gets the receiver's response to a request.
    ///
    /// - Parameters:
    ///   - observation: the observation of the receiver.
    ///   - answer: responds to a request; it is also called for requests of other agents.
    ///   - request: the sender's request.
    ///   - describe: returns a description of a response for the comparison.
    ///   - expected: the expected description.
    func check<Request: RequestEvent>(
        _ observation: EventObservation<Request>,
        answer: @escaping @Sendable (Request) throws -> Void,
        to request: Request,
        _ describe: @escaping @Sendable (Request.Response) throws -> String,
        gives expected: String
    ) async throws {
        let received = ReceivedValues<String>()
        let subscription = receiver.subscribe(observation) { event in
            do {
                try answer(event)
            } catch {
                received.append("\(error)")
            }
        }
        defer { subscription.cancel() }
        try await connect()
        let pending = try sender.publish(request) { response in
            do {
                received.append(try describe(response))
            } catch {
                received.append("\(error)")
            }
        }
        defer { pending.cancel() }
        try await eventually("the answer arrives", within: 10) { received.count > 0 }
        #expect(received.values == [expected])
    }
}

extension Pattern {
    /// Creates a pattern that is checked in a scene.
    init(_ name: String, in check: @escaping @Sendable (Scene) async throws -> Void) {
        self.init(name: name) { route in
            let scene = try Scene(route)
            do {
                try await check(scene)
            } catch {
                await scene.end()
                throw error
            }
            await scene.end()
        }
    }
}
