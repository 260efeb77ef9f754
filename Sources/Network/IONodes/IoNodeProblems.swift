package import Base
import Coaty
package import ProblemDetails

extension Problems {
    package static func of(_ refusal: IoNodeRegistry.Refusal) -> Problem {
        switch refusal {
        case .conflict(let pointer):
            conflict("\(pointer) is already registered.", pointer: pointer)
        case .tooMany(let limit):
            Problem(
                type: typePrefix + "too-many-io-nodes",
                title: "Too many IO nodes",
                status: 503,
                detail: "At most \(limit) IO nodes can be registered at a time.",
                headers: retry
            )
        case .offline: of(CommunicationError.offline)
        case .stopped: shuttingDown
        }
    }

    /// Returns the problem for an id that no client has registered, or whose registration has ended.
    package static func notRegistered(_ what: String) -> Problem {
        notFound(detail: "No \(what) with this id is registered at this gateway.")
    }
}

extension IoNodeRegistry.Refusal: ProblemError {
    package var problem: Problem { Problems.of(self) }
}
