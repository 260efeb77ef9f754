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
