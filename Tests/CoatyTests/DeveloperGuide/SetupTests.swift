import Coaty
import CoatyMQTT
import Testing

/// The chapter "Setup instructions and requirements".
@Suite struct SetupTests {
    /// The discovery itself is tested beside the binding.
    @Test func configuresBrokerDiscovery() throws {
        let config = try Configuration.build { config in
            let mqttClientOptions = MQTTClientOptions(shouldTryMDNSDiscovery: true)

            config.communication = CommunicationOptions(mqttClientOptions: mqttClientOptions)
        }
        #expect(config.communication?.shouldAutoStart == true, "discovery starts the agent, as the guide says")
    }
}
