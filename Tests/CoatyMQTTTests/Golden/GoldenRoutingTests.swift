import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Routers in recorded scenes, compared with the recorded routers.
@ControllerActor @Suite(.exclusive, .timeLimit(.minutes(1))) struct GoldenRoutingTests {
    private nonisolated static let routerId = "66666666-6666-4666-8666-666666666666"

    struct Scene: CustomTestStringConvertible {
        let testDescription: String
        /// The first and the last step in which the router takes part.
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

    /// The two rules in the developer guide.
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
                // Use the recorded response as a response to the request of this router.
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
        #expect(try await said(broker, count: compared).count == compared, "no further messages")
    }

    private func container(
        _ scene: Scene,
        _ packets: [Golden.Packet],
        _ broker: TopicBroker
    ) throws -> Container {
        let advertise = try #require(packets.first { $0.topic?.contains("/ADV:IoContext/") ?? false }?.payload)
        let object = try #require(try Payload(Array(advertise.utf8)).json["object"])
        let context = try #require(try PayloadCoder.object(object) as? IoContext)
        // The router must set it.
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

    /// Returns the messages of the router except its later Discover events: it discovers again when agents join, the
    /// reference does not.
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

    /// Returns a payload without the member that the reference does not send.
    private static func comparable(_ payload: [UInt8]) throws -> ComparableJSON {
        guard case .object(var members) = try ComparableJSON(payload) else { throw TimedOut() }
        members["isExternalRoute"] = nil
        return .object(members)
    }
}
