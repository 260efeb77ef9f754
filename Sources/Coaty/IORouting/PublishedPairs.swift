import Synchronization

/// The associations of a context as all agents see them: those that any router has published and not dissolved.
///
/// A silent router follows them, so that it can dissolve what the router before it would have dissolved.
final class PublishedPairs: Sendable {
    typealias Pair = AssociateQueue.Pair

    /// By pair: whether this router has decided meanwhile that it ends.
    private let pairs = Mutex<[Pair: Bool]>([:])

    /// Records an event of any router. At the limit, further pairs are not followed.
    func note(_ data: AssociateEventData) {
        let pair = Pair(sourceId: data.ioSourceId, actorId: data.ioActorId)
        let isAssociated = data.associatingRoute != nil
        pairs.withLock { pairs in
            guard isAssociated else {
                pairs[pair] = nil
                return
            }
            guard pairs.count < IoRouter.maximumAssociations || pairs[pair] != nil else { return }
            pairs[pair] = false
        }
    }

    /// Records decisions that this router has not published.
    func note(_ changes: IoAssociationChanges) {
        pairs.withLock { pairs in
            for association in changes.removed {
                let pair = Pair(sourceId: association.ioSourceId, actorId: association.ioActorId)
                if pairs[pair] != nil { pairs[pair] = true }
            }
            for association in changes.added {
                let pair = Pair(sourceId: association.ioSourceId, actorId: association.ioActorId)
                if pairs[pair] != nil { pairs[pair] = false }
            }
        }
    }

    /// Returns the published pairs that must be dissolved: this router has ended them, or knows both IO points and does
    /// not associate them. Other pairs may belong to nodes that it has not discovered yet.
    func outdated(in table: IoRoutingTable) -> [IoAssociation] {
        pairs.withLock(\.self).compactMap { pair, isEnded in
            guard table.association(pair.sourceId, pair.actorId) == nil,
                isEnded || table.source(pair.sourceId) != nil && table.actor(pair.actorId) != nil
            else { return nil }
            return IoAssociation(ioSourceId: pair.sourceId, ioActorId: pair.actorId)
        }
    }
}
