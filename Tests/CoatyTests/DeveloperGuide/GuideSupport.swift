import Coaty
import CoatyMQTT
import TestSupport

@testable import CoatyTestSupport

/// A mosquitto broker, and the agents of an example.
///
/// The examples use the library like an application, so these files may only use its public API.
struct GuideNetwork {
    let broker: BrokerProcess

    init() throws {
        broker = try BrokerProcess()
    }

    var mqttClientOptions: MQTTClientOptions { MQTTClientOptions(host: "127.0.0.1", port: broker.port) }

    /// Creates an agent that has not joined yet.
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

    /// Starts agents one after the other. When the first agent has received the identity of another one, the
    /// observations that the other one started in `onCommunicationManagerStarting()` are active.
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

    /// Shuts down the agents, and stops the broker.
    func end(_ agents: Container...) async {
        for agent in agents { await agent.shutdown() }
        broker.stop()
    }
}

/// Returns the first element of a stream.
func first<Events: AsyncSequence & Sendable>(of stream: Events) async throws -> Events.Element
where Events.Element: Sendable {
    try await withPatience {
        for try await element in stream { return element }
        throw TimedOut()
    }
}
