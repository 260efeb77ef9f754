/// An association of a source with an actor.
public struct IoAssociation: Sendable, Hashable, Encodable {
    /// The source.
    public let ioSourceId: CoatyUUID
    /// The actor.
    public let ioActorId: CoatyUUID
    /// The update rate recommended to the source, in milliseconds; the same in all its associations.
    public let updateRate: Int?

    /// Creates an association.
    public init(ioSourceId: CoatyUUID, ioActorId: CoatyUUID, updateRate: Int? = nil) {
        self.ioSourceId = ioSourceId
        self.ioActorId = ioActorId
        self.updateRate = updateRate
    }
}

/// The changes that an evaluation of an IO router made.
public struct IoAssociationChanges: Sendable, Hashable, Encodable {
    /// The new associations.
    public var added: [IoAssociation] = []
    /// The dissolved associations, without a rate.
    public var removed: [IoAssociation] = []
    /// The kept associations whose rate or route has changed.
    public var changed: [IoAssociation] = []

    /// Creates an empty set of changes.
    public init() {}

    mutating func append(_ later: IoAssociationChanges) {
        added += later.added
        removed += later.removed
        changed += later.changed
    }

    /// The number of all changes.
    public var count: Int { added.count + removed.count + changed.count }

    /// Whether there are no changes.
    public var isEmpty: Bool { added.isEmpty && removed.isEmpty && changed.isEmpty }
}
