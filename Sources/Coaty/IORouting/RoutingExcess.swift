/// The error of rules that take too much work: a pair of a source and an actor that is not associated because of it.
/// There may be further pairs.
public struct RoutingExcess: Error, Sendable, Hashable {
    /// The source.
    public let ioSourceId: CoatyUUID
    /// The actor.
    public let ioActorId: CoatyUUID
    /// Whether the work of all pairs together, rather than of this pair, is too much.
    public let isOfRun: Bool
}

extension RoutingExcess: CustomStringConvertible {
    /// The pair, and the limit that was exceeded.
    public var description: String {
        let pair = "the source \(ioSourceId) and the actor \(ioActorId)"
        return isOfRun
            ? "the rules take too much work for all pairs together; \(pair), and others, were not evaluated"
            : "the rules take more than \(RoutingWork.stepsPerPair) steps for \(pair)"
    }
}
