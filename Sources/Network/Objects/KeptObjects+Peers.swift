package import Access
import Coaty

/// The objects of clients in a cluster.
extension KeptObjects {
    /// Advertises an object that a client had advertised at another gateway, which has left.
    ///
    /// - Parameters:
    ///   - subject: the principal that owns the object; nil if there is none.
    ///   - milliseconds: the rest of its lifetime; nil until it is withdrawn.
    /// - Throws: `Problem` if the client has no room for it; `PayloadError`, `CommunicationError`.
    package func adopt(
        _ object: AliveObject,
        of subject: Principal.Subject?,
        for owner: Owner,
        until milliseconds: Int64?
    ) throws {
        let event = try AdvertiseEvent(payload: Payload(object: object.bytes))
        let names = event.header.names.count
        let place = try owner.account.takeOutbox(event.payload.bytes.count, publications: names)
        if let subject { try owners.insert(object.objectId, subject, owner.account) }
        let lifetime = milliseconds.map { ObjectLifetime.duration(.milliseconds($0)) }
        _ = try advertise(event, lifetime, from: manager, by: owner, holding: place)
    }

    /// Announces an object to the other gateways. They take over what the gateway advertises, but not what ends with a
    /// connection.
    func announce(
        _ id: CoatyUUID,
        _ manager: CommunicationManager,
        _ owner: Principal.Subject,
        _ lifetime: ObjectLifetime?,
        _ peers: PeerObjects
    ) {
        var end: Int64?
        var endsWithConnection = manager !== self.manager
        switch lifetime {
        case .duration(let duration): end = peers.time(after: duration)
        case .connection: endsWithConnection = true
        case nil: break
        }
        peers.update(id) { record in (record.keeper, record.end) = endsWithConnection ? (nil, nil) : (owner, end) }
    }

    /// Advertises or withdraws an object again, of which another gateway has advertised an old version: it was offline
    /// when a client of this gateway changed or withdrew the object.
    func correct(_ id: CoatyUUID) {
        do {
            if let keeper = state.withLock({ $0.entries[id]?.manager }) {
                try keeper.advertiseAgain(id)
            } else {
                try manager.publishDeadvertise(.with(objectIds: [id]))
            }
        } catch {
            logger.debug("an old version of an object stays", metadata: ["error": "\(error)"])
        }
    }
}
