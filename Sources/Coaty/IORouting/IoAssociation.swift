/// A source and an actor that an IO router has associated.
public struct IoAssociation: Sendable, Hashable, Encodable {
    /// The source.
    public let ioSourceId: CoatyUUID
    /// The actor.
    public let ioActorId: CoatyUUID
    /// The rate that is recommended to the source, in milliseconds: the same in all its associations.
    public let updateRate: Int?

    /// Creates an association.
    public init(ioSourceId: CoatyUUID, ioActorId: CoatyUUID, updateRate: Int? = nil) {
        self.ioSourceId = ioSourceId
        self.ioActorId = ioActorId
        self.updateRate = updateRate
    }
}

/// What is different after an IO router has decided anew.
public struct IoAssociationChanges: Sendable, Hashable, Encodable {
    /// The associations that are new.
    public var added: [IoAssociation] = []
    /// The associations that are dissolved; without a rate.
    public var removed: [IoAssociation] = []
    /// The associations that are kept and have another rate, or route, than before.
    public var changed: [IoAssociation] = []

    /// No changes.
    public init() {}

    mutating func append(_ later: IoAssociationChanges) {
        added += later.added
        removed += later.removed
        changed += later.changed
    }

    /// Whether nothing is different.
    public var isEmpty: Bool { added.isEmpty && removed.isEmpty && changed.isEmpty }
}
