/// The current association state of an IO source or IO actor.
public struct IoStateEvent: Sendable, Hashable {
    /// Whether there is at least one association.
    public let hasAssociations: Bool
    /// The rate that is recommended to a source, in milliseconds; nil if there is none, and for actors.
    public let updateRate: Int?

    init(hasAssociations: Bool, updateRate: Int? = nil) {
        self.hasAssociations = hasAssociations
        self.updateRate = updateRate
    }
}
