package import Access
import Base
package import Coaty
package import Feeds
package import Network
package import ProblemDetails

/// Registers an IO node.
package struct RegisterIoNode: AsyncOperation {
    package var kind: OperationKind { OperationKind(verb: .register, pattern: .nodes) }

    let request: IoNodeRequest

    package init(request: IoNodeRequest) {
        self.request = request
    }

    package var isAudited: Bool { true }

    /// Returns the claims: a node publishes on the external routes of its sources, and receives the values that a
    /// router associates its actors with.
    package func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        let context = AccessTarget.context(WireName(request.node.name))
        let object = try? AdvertiseEvent.with(object: request.node).payload.json["object"]
        var claims = [AccessRequest(verb: .register, pattern: .nodes, target: context, object: object)]
        for topic in request.node.ioSources.compactMap(\.externalRoute) {
            claims.append(AccessRequest(verb: .publish, pattern: .raw, target: .topic(topic)))
        }
        if !request.node.ioActors.isEmpty {
            claims.append(AccessRequest(verb: .observe, pattern: .iovalue, target: context))
        }
        return claims
    }

    /// - Throws: ``IoNodeRegistry/Refusal``; `CommunicationError` if the gateway is offline; errors of the agent's
    ///   creation.
    package func execute(
        on target: Void,
        in network: NetworkParts,
        under permit: Permit
    ) async throws -> (node: LeasedIoNode, lease: Lease) {
        // If another object in the network had the same id, it would be deadvertised together with the node.
        for (id, pointer) in request.ids where permit.isRestricted {
            guard network.objects.object(id) == nil, !network.objects.hasDependents(id),
                !network.owners.isForeign(id, to: permit.principal.subject, network.ioNodes)
            else { throw IoNodeRegistry.Refusal.conflict(pointer: pointer) }
        }
        if let taken = request.ids.first(where: { network.peerNodes?.other($0.id) != nil }) {
            throw IoNodeRegistry.Refusal.conflict(pointer: taken.pointer)
        }
        let node = try network.ioNodes.node(request)
        // A node can't join while the gateway itself is offline.
        guard network.manager.isConnected else { throw CommunicationError.offline }
        let place = try permit.account.take(.ioNodes)
        return (node, try await network.ioNodes.register(node, owner: permit.principal, place: place))
    }
}

/// Lists the registered IO nodes.
package struct ReadIoNodes: Operation {
    package var kind: OperationKind { OperationKind(verb: .read, pattern: .nodes) }

    package var admission: AdmissionRule {
        .filtered(AccessRequest(verb: .read, pattern: .nodes, target: .anyContext, isOfOthers: true))
    }

    package func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        []
    }

    /// - Returns: the nodes, and whether there may be others that the client must not see.
    package func execute(
        on target: Void,
        in network: NetworkParts,
        under permit: Permit
    ) -> (nodes: [IoNodeRegistry.Owned], isFiltered: Bool) {
        guard let view = permit.view else { return (network.ioNodes.all, false) }
        let nodes = network.ioNodes.all.filter {
            view.allows([$0.request(.read, .nodes, by: permit.principal.subject)])
        }
        return (nodes, true)
    }

    package init() {}
}

/// Reads one IO node that is registered at this gateway.
package struct ReadIoNode: Operation {
    /// Nil if the client's id is not a UUID.
    let id: CoatyUUID?

    package init(id: CoatyUUID?) {
        self.id = id
    }

    package var kind: OperationKind { OperationKind(verb: .read, pattern: .nodes) }
    package var concealment: AccessRequest? { AccessRequest(verb: .read, pattern: .nodes, target: .anyContext) }
    package var unknown: Problem { Problems.notRegistered("IO node") }

    package func resolve(in network: NetworkParts) -> IoNodeRegistry.Owned? { id.flatMap(network.ioNodes.registered) }

    package func claims(
        on target: IoNodeRegistry.Owned,
        in network: NetworkParts,
        by subject: Principal.Subject
    ) -> [AccessRequest] {
        [target.request(.read, .nodes, by: subject)]
    }

    package func execute(
        on target: IoNodeRegistry.Owned,
        in network: NetworkParts,
        under permit: Permit
    ) -> IoNodeRegistry.Owned { target }
}

/// An IO node that a client has registered at this gateway or at another one of its cluster.
package enum RegisteredIoNode: Sendable {
    case here(IoNodeRegistry.Owned)
    case there(CoatyUUID, PeerNodes.Record, gateway: CoatyUUID)
}

/// An operation on an IO node that any gateway of the cluster can perform.
protocol IoNodeOperation: AsyncOperation where Target == RegisteredIoNode {
    /// Nil if the client's id is not a UUID.
    var id: CoatyUUID? { get }
}

extension IoNodeOperation {
    package var kind: OperationKind { OperationKind(verb: .register, pattern: .nodes) }
    package var concealment: AccessRequest? { AccessRequest(verb: .register, pattern: .nodes, target: .anyContext) }
    package var unknown: Problem { Problems.notRegistered("IO node") }
    package var isNewWork: Bool { false }

    package func resolve(in network: NetworkParts) -> RegisteredIoNode? {
        guard let id else { return nil }
        if let node = network.ioNodes.registered(id) { return .here(node) }
        return network.peerNodes?.other(id).map { .there(id, $0.record, gateway: $0.gateway) }
    }

    package func claims(
        on target: RegisteredIoNode,
        in network: NetworkParts,
        by subject: Principal.Subject
    ) -> [AccessRequest] {
        switch target {
        case .here(let node): [node.request(.register, .nodes, by: subject)]
        case .there(let id, let record, _):
            [
                AccessRequest(
                    verb: .register,
                    pattern: .nodes,
                    target: .context(WireName(record.context)),
                    objectText: network.objects.object(id)?.bytes,
                    isOfOthers: record.owner != subject
                )
            ]
        }
    }
}

/// Renews the lease of an IO node.
package struct RenewIoNode: IoNodeOperation {
    let id: CoatyUUID?
    /// Nil keeps the lease's duration.
    let duration: Duration?

    package init(id: CoatyUUID?, duration: Duration?) {
        self.id = id
        self.duration = duration
    }

    package func execute(on target: RegisteredIoNode, in network: NetworkParts, under permit: Permit) async throws
        -> Lease
    {
        let lease =
            switch target {
            case .here(let node): network.ioNodes.renew(node.node, for: duration)
            case .there(let id, _, let gateway): try await network.peerNodes?.renew(id, at: gateway, for: duration)
            }
        guard let lease else { throw unknown }
        return lease
    }
}

/// Withdraws an IO node.
package struct WithdrawIoNode: IoNodeOperation {
    let id: CoatyUUID?

    package init(id: CoatyUUID?) {
        self.id = id
    }

    package var isAudited: Bool { true }

    package func execute(on target: RegisteredIoNode, in network: NetworkParts, under permit: Permit) async throws {
        let isWithdrawn =
            switch target {
            case .here(let node): await network.ioNodes.withdraw(node.node)
            case .there(let id, _, let gateway): try await network.peerNodes?.withdraw(id, at: gateway) ?? false
            }
        guard isWithdrawn else { throw unknown }
    }
}
