import Coaty
import CoatyMQTT
import TestSupport
import Testing

/// The example of docs/operations-of-agents.md.
@Suite(.exclusive) struct OperationsOfAgentsTests {
    @Test @ControllerActor func anIdentityDescribesOperations() throws {
        let common = CommonOptions(agentIdentity: [
            "name": "Greeter",
            "operations": [
                [
                    "name": "com.example.greet",
                    "description": "Greets a person.",
                    "parameters": ["name": "the person's name"],
                    "example": ["name": "Ann"],
                ]
            ],
        ])
        let mqtt = MQTTClientOptions(host: "127.0.0.1", port: 1)
        let container = try Container.resolve(
            components: Components(controllers: [:]),
            configuration: Configuration(common: common, communication: CommunicationOptions(mqttClientOptions: mqtt))
        )
        #expect(container.identity.name == "Greeter")
        #expect(container.identity.custom["operations"] == common.agentIdentity?["operations"])
    }
}
