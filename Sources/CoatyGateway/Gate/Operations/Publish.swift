import Access
import Coaty
import HTTPServer
import Network

/// Publishes a one-way event.
struct Publish: Operation {
    let publication: PublicationRequest
    /// The lifetime of an advertised object; nil until it is withdrawn.
    var lifetime: ObjectLifetime?
    /// The identity that publishes; nil for the gateway's identity.
    var identity: ClientIdentity?

    var kind: OperationKind { OperationKind(verb: .publish, pattern: publication.pattern) }

    var payload: Payload? {
        switch publication {
        case .advertise(let event): event.payload
        case .deadvertise(let event): event.payload
        case .channel(let event): event.payload
        case .raw: nil
        }
    }

    func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        switch publication {
        case .advertise(let event): return network.versions(of: event.header, .publish, .advertise, by: subject)
        case .deadvertise(let event):
            var seen: Set<CoatyUUID> = []
            let ids = event.data.objectIds.filter { seen.insert($0).inserted }
            return ids.flatMap { network.deadvertise($0, by: subject) }
        case .channel(let event): return AccessRequest.channel(.publish, WireName(event.channelId), event.payload)
        case .raw(let event):
            return [
                AccessRequest(
                    verb: .publish,
                    pattern: .raw,
                    target: .topic(event.topic),
                    isRetained: event.shouldRetain
                )
            ]
        }
    }

    /// - Throws: `Problem` if the principal has too many objects in the network, or no room for one with a lifetime;
    ///   `CommunicationError`.
    func execute(on target: Void, in network: NetworkParts, under permit: Permit) throws -> PublishOutcome {
        let manager = identity?.manager ?? network.manager
        let account = permit.account
        let (size, publications) = (publication.size, publication.publications)
        let place = try account.takeOutbox(size, publications: publications)
        account.countPublication(publications * size)
        switch publication {
        case .advertise(let event):
            if permit.isRestricted {
                try network.owners.insert(event.header.objectId, permit.principal.subject, account)
            }
            let owner = KeptObjects.Owner(principal: permit.principal, account: account)
            return try network.keptObjects.advertise(event, lifetime, from: manager, by: owner, holding: place)
        case .deadvertise(let event):
            let delivery = try network.keptObjects.deadvertise(event, from: manager, holding: place)
            network.owners.remove(event.data.objectIds)
            return PublishOutcome(delivery: delivery)
        case .channel(let event): return PublishOutcome(delivery: try manager.publishChannel(event, holding: place))
        case .raw(let event): return PublishOutcome(delivery: try manager.publishRaw(event, holding: place))
        }
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
    fileprivate func deadvertise(_ id: CoatyUUID, by subject: Principal.Subject) -> [AccessRequest] {
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

extension PublicationRequest {
    fileprivate var pattern: AccessPattern {
        switch self {
        case .advertise: .advertise
        case .deadvertise: .deadvertise
        case .channel: .channel
        case .raw: .raw
        }
    }

    /// The size of the payload, in bytes.
    fileprivate var size: Int {
        switch self {
        case .advertise(let event): event.payload.bytes.count
        case .deadvertise(let event): event.payload.bytes.count
        case .channel(let event): event.payload.bytes.count
        case .raw(let event): event.payload.count
        }
    }

    /// The number of names that the event is published under.
    fileprivate var publications: Int {
        if case .advertise(let event) = self { event.header.names.count } else { 1 }
    }
}
