import Access
import Base
import Coordination
import ProblemDetails

/// An operation on the gateway as a whole. It works even while the gateway is paused, so that the gateway can be
/// resumed.
protocol ControlOperation: ControlledOperation where Target == Void {}

extension ControlOperation {
    var kind: OperationKind { OperationKind(verb: .administer, pattern: .gateway) }

    func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        [AccessRequest(verb: .administer, pattern: .gateway)]
    }
}

/// Pauses or resumes the gateway.
struct SetPaused: AsyncOperation, ControlOperation {
    let isPaused: Bool

    var isAudited: Bool { true }

    /// - Returns: the number of requests that are pending.
    /// - Throws: `Problem` with status 503 if the gateway stops.
    func execute(on target: Void, in network: NetworkParts, under permit: Permit) async throws -> Int {
        guard let root = network.control.root else { throw Problems.shuttingDown }
        if isPaused { await root.pause() } else { await root.resume() }
        guard root.state == (isPaused ? .paused : .active) else { throw Problems.shuttingDown }
        return network.requestCount.pending
    }
}

/// Reads the coordinator tree.
struct ReadTree: Operation, ControlOperation {
    func execute(on target: Void, in network: NetworkParts, under permit: Permit) throws -> TreeNode {
        guard let root = network.control.root else { throw Problems.shuttingDown }
        return TreeNode(root)
    }
}

/// Reads the configuration again and puts it in force.
struct ReloadConfiguration: AsyncOperation, ControlOperation {
    var isAudited: Bool { true }

    /// - Returns: the names of the settings that have changed.
    /// - Throws: `Problem` with status 422 if nothing was changed.
    func execute(on target: Void, in network: NetworkParts, under permit: Permit) async throws -> [String] {
        do throws(InvalidConfiguration) {
            return try await network.control.reload()
        } catch {
            throw Problem(
                type: Problems.typePrefix + "invalid-configuration",
                title: "Invalid configuration",
                status: 422,
                detail: error.description
            )
        }
    }
}
