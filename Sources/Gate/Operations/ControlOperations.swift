import Access
import Base
import Coordination
import Feeds
import ProblemDetails

/// An operation on the gateway as a whole. It works even while the gateway is paused, so that the gateway can be
/// resumed.
protocol ControlOperation: ControlledOperation where Target == Void {}

extension ControlOperation {
    package var kind: OperationKind { OperationKind(verb: .administer, pattern: .gateway) }

    package func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        [AccessRequest(verb: .administer, pattern: .gateway)]
    }
}

/// Pauses or resumes the gateway.
package struct SetPaused: AsyncOperation, ControlOperation {
    let isPaused: Bool

    package init(isPaused: Bool) {
        self.isPaused = isPaused
    }

    package var isAudited: Bool { true }

    /// - Returns: the number of requests that are pending.
    /// - Throws: `Problem` with status 503 if the gateway stops.
    package func execute(on target: Void, in network: NetworkParts, under permit: Permit) async throws -> Int {
        guard let root = network.control.root else { throw Problems.shuttingDown }
        if isPaused { await root.pause() } else { await root.resume() }
        guard root.state == (isPaused ? .paused : .active) else { throw Problems.shuttingDown }
        return network.requestCount.pending
    }
}

/// Reads the coordinator tree.
package struct ReadTree: Operation, ControlOperation {
    package func execute(on target: Void, in network: NetworkParts, under permit: Permit) throws -> TreeNode {
        guard let root = network.control.root else { throw Problems.shuttingDown }
        return TreeNode(root)
    }

    package init() {}
}

/// Reads the configuration again and puts it in force.
package struct ReloadConfiguration: AsyncOperation, ControlOperation {
    package var isAudited: Bool { true }

    /// - Returns: the names of the settings that have changed.
    /// - Throws: `Problem` with status 422 if nothing was changed.
    package func execute(on target: Void, in network: NetworkParts, under permit: Permit) async throws -> [String] {
        do {
            return try await network.control.reload()
        } catch let error as InvalidConfiguration {
            throw Problem(
                type: Problems.typePrefix + "invalid-configuration",
                title: "Invalid configuration",
                status: 422,
                detail: error.description
            )
        }
    }

    package init() {}
}
