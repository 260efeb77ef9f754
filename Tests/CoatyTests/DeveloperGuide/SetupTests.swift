import Coaty
import CoatyMQTT
import TestSupport
import Testing

/// The examples of the chapter "Setup instructions and requirements".
@Suite(.exclusive) struct SetupTests {
    /// The tests of the MQTT binding test the discovery itself.
    @Test func configuresBrokerDiscovery() throws {
        var config = try Configuration.build { config in
            let mqttClientOptions = MQTTClientOptions(shouldTryMDNSDiscovery: true)

            config.communication = CommunicationOptions(mqttClientOptions: mqttClientOptions)
        }
        #expect(config.communication?.shouldAutoStart == true, "discovery starts the agent, as in the guide")
        config.communication?.shouldAutoStart = false
        #expect(config.communication?.shouldAutoStart == true, "the option is ignored, as in the guide")
    }
}
