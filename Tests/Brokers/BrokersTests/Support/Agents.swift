import Coaty
import CoatyMQTT

/// Returns the options of an agent on a broker of 127.0.0.1.
///
/// - Parameters:
///   - port: the port of the broker.
///   - dialect: how the broker delivers topics.
///   - change: sets further options.
func options(
    _ port: UInt16,
    namespace: String = "-",
    dialect: TopicDialect = .plain,
    _ change: (inout MQTTClientOptions) -> Void = { _ in }
) -> CommunicationOptions {
    var options = MQTTClientOptions(host: "127.0.0.1", port: port)
    options.topicDialect = dialect
    change(&options)
    return CommunicationOptions(namespace: namespace, mqttClientOptions: options)
}

/// Creates an agent without starting it.
func makeAgent(_ options: CommunicationOptions, ioNodes: [IoNode] = []) throws -> CommunicationManager {
    try CommunicationManager(identity: Identity(name: "Agent"), ioNodes: ioNodes, options: options)
}

/// Returns an object of an object type.
func makeObject(_ objectType: String, name: String = "object") -> CoatyObject {
    CoatyObject(coreType: .CoatyObject, objectType: objectType, objectId: .init(), name: name)
}

/// The online periods of an agent.
final class OnlinePeriods: Sendable {
    private let received: ReceivedValues<Int>
    private let task: Task<Void, Never>

    /// Starts observing an agent; ends when the object is released.
    init(_ agent: CommunicationManager) {
        let received = ReceivedValues<Int>()
        let periods = agent.onlinePeriods()
        self.received = received
        task = Task { for await period in periods { received.append(period) } }
    }

    deinit { task.cancel() }

    /// The number of the latest online period; nil before the first.
    var latest: Int? { received.values.last }
}
