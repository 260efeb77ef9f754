import Base
package import ProblemDetails
import Synchronization

/// Whether the gateway is paused, so that the gate refuses new work.
package final class PauseState: Sendable {
    private let isSet = Atomic(false)

    package init() {}

    package var isPaused: Bool { isSet.load(ordering: .relaxed) }

    package func set(_ isPaused: Bool) { isSet.store(isPaused, ordering: .relaxed) }
}

extension Problems {
    package static let paused = Problem(
        type: typePrefix + "paused",
        title: "Paused",
        status: 503,
        detail: "The gateway is paused and accepts no new work. Pending requests and open subscriptions continue.",
        headers: retry
    )
}
