public import Coaty

extension CommunicationOptions {
    /// Options of an agent that talks over MQTT.
    ///
    /// - Parameters:
    ///   - namespace: separates applications that share a broker.
    ///   - shouldEnableCrossNamespacing: whether events of all namespaces are observed.
    ///   - outboxLimits: limits of what is queued for the connection.
    ///   - mqttClientOptions: how to reach the broker.
    ///   - shouldAutoStart: whether a container starts the communication manager when it is resolved. It always does where
    ///     the broker is to be discovered by mDNS.
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
            shouldAutoStart: shouldAutoStart || mqttClientOptions.shouldTryMDNSDiscovery,
            outboxLimits: outboxLimits
        ) { logger in
            try MQTTBinding(options: mqttClientOptions, logger: logger)
        }
    }
}
