package import Access
import Coaty
import Feeds
package import Network

/// Publishes a one-way event.
struct Publish<Publication: ClientPublication>: Operation {
    let publication: Publication
    /// The lifetime of an advertised object; nil until it is withdrawn.
    var lifetime: ObjectLifetime?
    /// The identity that publishes; nil for the gateway's identity.
    var identity: ClientIdentity?

    var kind: OperationKind { OperationKind(verb: .publish, pattern: Publication.pattern) }

    var payload: Payload? { publication.content }

    func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        publication.claims(in: network, by: subject)
    }

    /// - Throws: `Problem` if the principal has too many objects in the network, or no room for one with a lifetime;
    ///   `CommunicationError`.
    func execute(on target: Void, in network: NetworkParts, under permit: Permit) throws -> PublishOutcome {
        let account = permit.account
        let (size, publications) = (publication.size, publication.publications)
        let place = try account.takeOutbox(size, publications: publications)
        account.countPublication(publications * size)
        let manager = identity?.manager ?? network.manager
        return try publication.publish(
            by: Publisher(manager: manager, lifetime: lifetime, place: place, permit: permit),
            in: network
        )
    }
}

extension Gate {
    /// Publishes an event of any pattern. See ``Publish``.
    package func publish(
        _ publication: some ClientPublication,
        _ lifetime: ObjectLifetime? = nil,
        from identity: ClientIdentity? = nil,
        by principal: Principal
    ) throws -> PublishOutcome {
        try publication.publish(through: self, lifetime, from: identity, by: principal)
    }
}

extension NetworkParts {
    /// Returns the requests for publishing or updating an object: both its new and its last known version must be
    /// allowed, so that no client can move an object into the part of the network that a condition covers.
    func versions(
        of object: ObjectHeader,
        _ verb: Verb,
        _ pattern: AccessPattern,
        by subject: Principal.Subject
    ) -> [AccessRequest] {
        let id = object.objectId
        let new = AccessRequest(
            verb: verb,
            pattern: pattern,
            target: .object(object.coreType, object.objectType),
            object: object.json
        )
        let isForeign = verb == .publish && owners.isForeign(id, to: subject, ioNodes)
        var requests: [AccessRequest] = []
        requests.reserveCapacity(2)
        requests.append(new)
        let registered = objects.registered(id)
        if let known = registered.known {
            requests.append(known.request(verb, pattern, isOfOthers: isForeign))
        } else if isForeign || owners.owner(id) == nil && !registered.isComplete {
            // The registry may no longer have the last version, so no condition can be evaluated for it.
            requests.append(AccessRequest(verb: verb, pattern: pattern, target: new.target, isOfOthers: isForeign))
        }
        // An object with the id of an agent: it would affect the ownership of the agent's objects.
        if verb == .publish, registered.hasDependents, object.coreType != .Identity {
            requests.append(AccessRequest(verb: verb, pattern: pattern, target: .coreType(.Identity)))
        }
        for index in requests.indices.dropFirst() { requests[index].isAboutExisting = true }
        return requests
    }

    /// Returns the requests for deadvertising an id and all objects that are withdrawn with it. The types of an unknown
    /// id are unknown.
    func deadvertise(_ id: CoatyUUID, by subject: Principal.Subject) -> [AccessRequest] {
        let isForeign = owners.isForeign(id, to: subject, ioNodes)
        var requests = [
            objects.object(id)?.request(.publish, .deadvertise, isOfOthers: isForeign)
                ?? AccessRequest(verb: .publish, pattern: .deadvertise, target: .anyObject, isOfOthers: isForeign)
        ]
        for dependent in objects.dependents(of: id) {
            let isForeign = owners.isForeign(dependent.objectId, to: subject, ioNodes)
            requests.append(dependent.request(.publish, .deadvertise, isOfOthers: isForeign))
        }
        for index in requests.indices { requests[index].isAboutExisting = true }
        return requests
    }
}
