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
