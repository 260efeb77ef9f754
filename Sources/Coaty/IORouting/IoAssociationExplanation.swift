/// Why an IO router associates a source with an actor, or does not.
///
/// In JSON `{ioSourceId, ioActorId, associated, updateRate?, compatible, valueTypes, useRawIoValues, rules, decidedBy?}`.
public struct IoAssociationExplanation: Sendable, Hashable {
    /// What one of the candidate rules says.
    public struct Rule: Sendable, Hashable, Encodable {
        /// The rule's name.
        public let name: String
        /// The value type that it is for; nil where it is for those without a rule of their own.
        public let valueType: String?
        /// Whether it associates the pair.
        public let holds: Bool
        /// Its condition with the values compared; nil where it is a closure.
        public let condition: ObjectFilterExplanation?
    }

    /// What both have of something.
    public struct Both<Value: Sendable & Hashable & Encodable>: Sendable, Hashable, Encodable {
        /// What the source has.
        public let source: Value
        /// What the actor has.
        public let actor: Value
    }

    /// The association; nil where there is none.
    public let association: IoAssociation?
    /// The source.
    public let ioSourceId: CoatyUUID
    /// The actor.
    public let ioActorId: CoatyUUID
    /// The value types, which must be equal.
    public let valueTypes: Both<String>
    /// Whether values are raw, which must be equal.
    public let useRawIoValues: Both<Bool>
    /// Whether the two can be associated at all; then it is for the rules.
    public let isCompatible: Bool
    /// The rules that count for the value type, in their order; none where the two are not compatible.
    public let rules: [Rule]

    /// The first rule that holds.
    public var decidedBy: Rule? { rules.first(where: \.holds) }
}

extension IoAssociationExplanation: Encodable {
    private enum Keys: String, CodingKey {
        case ioSourceId, ioActorId, associated, updateRate, compatible, valueTypes, useRawIoValues, rules, decidedBy
    }

    /// Encodes the explanation.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(ioSourceId, forKey: .ioSourceId)
        try container.encode(ioActorId, forKey: .ioActorId)
        try container.encode(association != nil, forKey: .associated)
        try container.encodeIfPresent(association?.updateRate, forKey: .updateRate)
        try container.encode(isCompatible, forKey: .compatible)
        try container.encode(valueTypes, forKey: .valueTypes)
        try container.encode(useRawIoValues, forKey: .useRawIoValues)
        try container.encode(rules, forKey: .rules)
        try container.encodeIfPresent(decidedBy?.name, forKey: .decidedBy)
    }
}

extension RuleBasedIoRouter {
    /// Why a source and an actor are associated, or are not.
    ///
    /// - Returns: nil where the context has no such source, or no such actor.
    public func explain(ioSourceId: CoatyUUID, ioActorId: CoatyUUID) -> IoAssociationExplanation? {
        guard let source = table.source(ioSourceId), let actor = table.actor(ioActorId), let decision else {
            return nil
        }
        let isCompatible = source.kind == actor.kind
        let candidates = isCompatible ? decision.rules.candidates(for: source.kind.valueType) : []
        let objects = decision.objects(source, actor)
        return IoAssociationExplanation(
            association: table.association(ioSourceId, ioActorId).map {
                IoAssociation(ioSourceId: ioSourceId, ioActorId: ioActorId, updateRate: $0.updateRate)
            },
            ioSourceId: ioSourceId,
            ioActorId: ioActorId,
            valueTypes: .init(source: source.point.valueType, actor: actor.point.valueType),
            useRawIoValues: .init(
                source: source.point.useRawIoValues ?? false,
                actor: actor.point.useRawIoValues ?? false
            ),
            isCompatible: isCompatible,
            rules: candidates.map { rule in
                let condition: ObjectFilterExplanation? =
                    if case .filter(let condition) = rule.condition {
                        condition.explain { objects[$0] }
                    } else {
                        nil
                    }
                return .init(
                    name: rule.name,
                    valueType: rule.valueType,
                    holds: decision.holds(rule, source, actor),
                    condition: condition
                )
            }
        )
    }
}
