import Base
import Coordination
import Logging
import ProblemDetails
import Synchronization

/// Whether the gateway is paused, so that the gate refuses new work.
final class PauseState: Sendable {
    private let isSet = Atomic(false)

    var isPaused: Bool { isSet.load(ordering: .relaxed) }

    func set(_ isPaused: Bool) { isSet.store(isPaused, ordering: .relaxed) }
}

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

extension ServerFrame {
    /// Reports whether the gateway accepts new work.
    enum Notice: String, Sendable {
        case paused, active
    }

    static func notice(_ notice: Notice) -> ServerFrame {
        ServerFrame(.notice, members: Array(#""state":"\#(notice.rawValue)""#.utf8))
    }
}

extension Problems {
    static let paused = Problem(
        type: typePrefix + "paused",
        title: "Paused",
        status: 503,
        detail: "The gateway is paused and accepts no new work. Pending requests and open subscriptions continue.",
        headers: retry
    )
}
