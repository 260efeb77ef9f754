import Base
import Coaty
import CoatyMQTT
import Edge
import Logging
import Network

/// The limits of clients, and the options of the agents.
extension Gateway {
    /// Returns the limits, with the maximum number of connections for the process.
    func limits(_ descriptors: DescriptorLimit) -> Limits {
        var limits = settings.limits
        limits[.connections].total = min(limits[.connections].total, 2 * descriptors.connections)
        return limits
    }

    /// Returns the communication options of the gateway's own agent.
    func agentOptions(_ broker: MQTTClientOptions) -> CommunicationOptions {
        var options = CommunicationOptions(
            namespace: settings.namespace,
            outboxLimits: settings.outboxLimits,
            mqttClientOptions: broker
        )
        options.maximumEventValues = settings.limits.eventValues
        return options
    }

    /// Returns the registry of IO nodes, whose agents join the gateway's namespace at the gateway's broker.
    func ioNodeRegistry(
        _ broker: MQTTClientOptions,
        _ peers: PeerNodes?,
        _ farewells: LateFarewells
    ) -> IoNodeRegistry {
        IoNodeRegistry(
            options: clientOptions(broker),
            name: settings.name,
            limit: settings.limits[.ioNodes].total,
            peers: peers,
            farewells: farewells,
            logger: logger.labelled(.broker)
        )
    }

    /// Returns the communication options for the agents of clients.
    func clientOptions(_ broker: MQTTClientOptions) -> CommunicationOptions {
        let limits = OutboxLimits(
            publications: min(settings.outboxLimits.publications, settings.limits.agentPublications),
            bytes: min(settings.outboxLimits.bytes, IoNodeRegistry.waitingBodies * settings.limits.bodySize)
        )
        // Each of these agents receives every Discover event.
        var broker = broker
        broker.maximumMessageSize = min(broker.maximumMessageSize, settings.limits.agentEventSize)
        var options = CommunicationOptions(
            namespace: settings.namespace,
            outboxLimits: limits,
            mqttClientOptions: broker
        )
        options.maximumEventValues = min(settings.limits.eventValues, settings.limits.agentEventValues)
        return options
    }
}
