package import Base
package import Cluster
package import Coaty
package import ProblemDetails

extension Problems {
    package static func unknownContext(_ id: CoatyUUID) -> Problem {
        notFound(detail: "There is no IO context \(id).")
    }

    package static func rulesTooExpensive(_ excess: RoutingExcess) -> Problem {
        Problem(
            type: typePrefix + "rules-too-expensive",
            title: "Rules too expensive",
            status: 422,
            detail: "The rules can't be evaluated for all pairs of a source and an actor: \(excess)."
        )
    }

    package static let tooManyPendingUpdates = Problem(
        type: typePrefix + "too-many-pending-updates",
        title: "Too many pending updates",
        status: 503,
        detail: "Too many updates of this context are pending.",
        headers: retry
    )

    private static func changeNotConfirmed(_ detail: String) -> Problem {
        Problem(
            type: typePrefix + "change-not-confirmed",
            title: "Change not confirmed",
            status: 503,
            detail: detail
        )
    }

    package static func of(_ failure: RoutingAdmin.Failure) -> Problem {
        switch failure {
        case .notFound(let detail):
            notFound(detail: detail)
        case .preconditionFailed(let version):
            Problem(
                type: typePrefix + "precondition-failed",
                title: "Precondition failed",
                status: 412,
                detail: version == nil
                    ? "The resource does not exist." : "The resource has changed since the version in If-Match.",
                headers: version.map { [("ETag", $0.text)] } ?? []
            )
        case .noAnswer(let milliseconds):
            noAnswer("No router completed the update within \(milliseconds) ms.")
        case .notKept:
            Problem(
                type: typePrefix + "state-not-kept",
                title: "State not kept",
                status: 500,
                detail: "The change is in effect, but could not be written to the state directory."
            )
        case .noSpeaker(let others):
            Problem(
                type: typePrefix + "no-router",
                title: "No router",
                status: 503,
                detail: others.first.map { "The agent \($0), which is no gateway of the cluster, routes the context." }
                    ?? "No gateway of the cluster routes the context now.",
                headers: retry
            )
        case .tooLargeForCluster(let maximum):
            contentTooLarge("In a cluster, a context and its rules have at most \(maximum) bytes.")
        case .notConfirmed(let gateways):
            changeNotConfirmed(
                "The change is in effect, but these gateways of the cluster have not confirmed that they stored it: "
                    + gateways.map(\.string).joined(separator: ", ") + "."
            )
        case .superseded:
            changeNotConfirmed(
                "The change was made, but another gateway routes the context now and may not know of it."
            )
        }
    }
}

extension RoutingAdmin.Failure: ProblemError {
    package var problem: Problem { Problems.of(self) }
}

extension Turns.Full: ProblemError {
    package var problem: Problem { Problems.tooManyPendingUpdates }
}

extension RoutingExcess: ProblemError {
    package var problem: Problem { Problems.rulesTooExpensive(self) }
}

extension Peers.Failure: ProblemError {
    package var problem: Problem {
        Problems.noAnswer("The gateway of the cluster that has to do this does not answer.")
    }
}
