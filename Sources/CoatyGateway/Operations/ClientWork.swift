import Coordination
import Feeds
import Gate
import Logging

/// The work of clients in the coordinator tree. While it is paused, the gate refuses new work, and `/readyz` responds
/// with 503. Pending requests complete, subscriptions continue, and all streams get a notice.
struct ClientWork: Component {
    let state: PauseState
    let connections: ClientConnections
    let logger: Logger

    func start() async {}
    func stop() async {}

    func pause() async {
        // Before the streams are notified.
        state.set(true)
        connections.announce(.paused)
        logger.notice("paused: new work is refused", metadata: ["streams": "\(connections.count)"])
    }

    func resume() async {
        state.set(false)
        connections.announce(.active)
        logger.notice("resumed")
    }
}
