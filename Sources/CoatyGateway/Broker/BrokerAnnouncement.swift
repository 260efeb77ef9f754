import CoatyMQTT
import Coordination

/// Announces the embedded broker in the network, and withdraws the announcement before the broker stops.
struct BrokerAnnouncement: Component {
    let announcement: MDNSAnnouncement

    func start() async throws { try announcement.start() }

    func stop() async { announcement.stop() }
}
