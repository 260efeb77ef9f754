import Coaty
import CoatyMQTT
import TestSupport

@testable import CoatyTestSupport

/// A mosquitto, and the agents of an example on it.
///
/// The examples see the library as an application does: none of these files may use what is not public.
struct GuideNetwork {
    let broker: BrokerProcess

    init() throws {
        broker = try BrokerProcess()
    }

    var mqttClientOptions: MQTTClientOptions { MQTTClientOptions(host: "127.0.0.1", port: broker.port) }

    /// An agent that has not joined yet.
    @ControllerActor
    func agent(
        _ controllers: KeyValuePairs<String, Controller.Type> = [:],
        objectTypes: [CoatyObject.Type] = []
    ) throws -> Container {
        try Container.resolve(
            components: Components(controllers: controllers, objectTypes: objectTypes),
            configuration: .build { config in
                config.communication = CommunicationOptions(
                    namespace: "com.example",
                    mqttClientOptions: mqttClientOptions
                )
            }
        )
    }

    /// Lets agents join one behind the other. When the first has seen the identity of another, what that observes in its
    /// `onCommunicationManagerStarting()` stands.
    func join(_ first: Container, _ others: Container...) async throws {
        let identities = first.communicationManager.observeAdvertise(withCoreType: .Identity)
        for manager in ([first] + others).map(\.communicationManager) {
            manager.start()
            try await withPatience {
                for await event in identities where event.sourceId == manager.identityId { return }
                throw TimedOut()
            }
        }
    }

    /// Shuts agents down, and ends the broker.
    func end(_ agents: Container...) async {
        for agent in agents { await agent.shutdown() }
        broker.stop()
    }
}

/// The first element of a stream.
func first<Element: Sendable>(of stream: AsyncStream<Element>) async throws -> Element {
    try await withPatience {
        for await element in stream { return element }
        throw TimedOut()
    }
}
