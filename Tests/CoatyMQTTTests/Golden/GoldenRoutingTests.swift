import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Routers say, in a recorded scene, what the recorded ones said.
@ControllerActor @Suite(.timeLimit(.minutes(1))) struct GoldenRoutingTests {
    private nonisolated static let routerId = "66666666-6666-4666-8666-666666666666"

    struct Scene: CustomTestStringConvertible {
        let testDescription: String
        /// The first step in which the router takes part, and the last.
        let steps: ClosedRange<String>
        let name: String
        let controllerType: IoRouter.Type
        let publications: Int
    }

    nonisolated static let scenes = [
        Scene(
            testDescription: "rules",
            steps: "087"..."102",
            name: "Router",
            controllerType: RuleBasedIoRouter.self,
            publications: 21
        ),
        Scene(
            testDescription: "raw values and an external route",
            steps: "104"..."110",
            name: "Basic router",
            controllerType: BasicIoRouter.self,
            publications: 8
        ),
    ]

    /// The developer guide's two rules.
    private static let rules = #"""
        [{"name": "Responsible actors", "valueType": "coaty.test.Temperature[Celsius]", "condition":
        ["actorNode.characteristics.isResponsibleForOperatingState", ["Equals", {"property": "context.operatingState"}]]}]
        """#

    @Test(arguments: scenes) func publishesTheSameEventsAsTheReference(scene: Scene) async throws {
        let packets = try Golden.lines("wire.jsonl", as: Golden.Packet.self).filter {
            scene.steps.contains($0.step) && ["connect", "publish"].contains($0.cmd)
        }
        let clientId = try #require(packets.first { $0.will?.topic.hasSuffix(Self.routerId) ?? false }).clientId
        let broker = TopicBroker()
        let container = try container(scene, packets, broker)
        let recordedRequestId = packets.first { $0.clientId == clientId && $0.topic?.contains("/DSC/") ?? false }?
            .topic?.split(separator: "/").last.map { "/\($0)" }
        var compared = 0
        var requestId: String?
        var hasLeft = false
        for packet in packets {
            guard let topic = packet.topic, let payload = packet.payload else {
                if packet.cmd == "connect", packet.clientId == clientId { container.communicationManager.start() }
                continue
            }
            guard packet.clientId == clientId else {
                // What answers the recorded router's request answers ours.
                let topic = try topic.replacing(#require(recordedRequestId), with: requestId ?? "")
                broker.publish(topic: topic, payload: Array(payload.utf8))
                continue
            }
            if packet.step.contains("router leaves"), !hasLeft {
                hasLeft = true
                await container.shutdown()
            }
            let said = try await said(broker, count: compared + 1)[compared]
            compared += 1
            #expect(try Self.comparable(said.payload) == ComparableJSON(payload), "\(packet.step)")
            if topic.contains("/DSC/") {
                #expect(said.topic.hasPrefix("coaty/3/golden/DSC/\(Self.routerId)/"))
                requestId = said.topic.split(separator: "/").last.map { "/\($0)" }
            } else {
                #expect(said.topic == topic, "\(packet.step)")
            }
        }
        #expect(compared == scene.publications)
        #expect(try await said(broker, count: compared).count == compared, "nothing else")
    }

    private func container(
        _ scene: Scene,
        _ packets: [Golden.Packet],
        _ broker: TopicBroker
    ) throws -> Container {
        let advertise = try #require(packets.first { $0.topic?.contains("/ADV:IoContext/") ?? false }?.payload)
        let object = try #require(try Payload(Array(advertise.utf8)).json["object"])
        let context = try #require(try PayloadCoder.object(object) as? IoContext)
        // The router is to set it.
        context.parentObjectId = nil
        return try Container.resolve(
            components: Components(controllers: ["router": scene.controllerType]),
            configuration: Configuration(
                common: CommonOptions(agentIdentity: ["name": .string(scene.name), "objectId": .string(Self.routerId)]),
                communication: CommunicationOptions(namespace: "golden") { _ in TopicBinding(broker: broker) },
                controllers: ControllerConfig(controllerOptions: [
                    "router": ControllerOptions(extra: [
                        "ioContext": context,
                        "rules": try IoAssociationRule.rules(JSONDocument(Array(Self.rules.utf8)).root),
                    ])
                ])
            )
        )
    }

    /// What the router has said, but for the requests after its first: it asks again when agents join, as the reference does
    /// not.
    private func said(_ broker: TopicBroker, count: Int) async throws -> [TopicBroker.Message] {
        @Sendable func own(_ messages: [TopicBroker.Message]) -> [TopicBroker.Message] {
            var hasAsked = false
            return messages.filter { message in
                guard message.topic.contains("/\(Self.routerId)") else { return false }
                guard message.topic.contains("/DSC/") else { return true }
                defer { hasAsked = true }
                return !hasAsked
            }
        }
        return own(try await broker.waitForMessages { own($0).count >= count })
    }

    /// A payload without the key that the reference does not send.
    private static func comparable(_ payload: [UInt8]) throws -> ComparableJSON {
        guard case .object(var members) = try ComparableJSON(payload) else { throw TimedOut() }
        members["isExternalRoute"] = nil
        return .object(members)
    }
}
