public import Coaty

extension CommunicationOptions {
    /// Creates options of an agent that communicates over MQTT.
    ///
    /// - Parameters:
    ///   - namespace: separates applications that share a broker.
    ///   - shouldEnableCrossNamespacing: whether events of all namespaces are observed.
    ///   - outboxLimits: limits of the publications that are queued for the connection.
    ///   - mqttClientOptions: the MQTT options of the agent.
    ///   - shouldAutoStart: whether a container starts the communication manager when it is resolved. If the
    ///     broker is discovered by mDNS, a container always starts it.
    public init(
        namespace: String = "-",
        shouldEnableCrossNamespacing: Bool = false,
        outboxLimits: OutboxLimits = OutboxLimits(),
        mqttClientOptions: MQTTClientOptions,
        shouldAutoStart: Bool = false
    ) {
        self.init(
            namespace: namespace,
            shouldEnableCrossNamespacing: shouldEnableCrossNamespacing,
            shouldAutoStart: shouldAutoStart,
            outboxLimits: outboxLimits
        ) { logger in
            try MQTTBinding(options: mqttClientOptions, logger: logger)
        }
        discoversBroker = mqttClientOptions.shouldTryMDNSDiscovery
    }
}
