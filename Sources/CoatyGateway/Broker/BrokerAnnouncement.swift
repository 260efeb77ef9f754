import CoatyMQTT
import Coordination

/// Tells the network of the embedded broker, and before that stops, that it is gone.
struct BrokerAnnouncement: Component {
    let announcement: MDNSAnnouncement

    func start() async throws { try announcement.start() }

    func stop() async { announcement.stop() }
}
