/// The reason why an IO router associates a source with an actor, or does not.
///
/// In JSON `{ioSourceId, ioActorId, associated, updateRate?, compatible, valueTypes, useRawIoValues, rules,
/// decidedBy?}`.
public struct IoAssociationExplanation: Sendable, Hashable {
    /// The verdict of one of the candidate rules.
    public struct Rule: Sendable, Hashable, Encodable {
        /// The rule's name.
        public let name: String
        /// The value type of the rule; nil if it is for value types that have no rule.
        public let valueType: String?
        /// Whether it associates the pair.
        public let holds: Bool
        /// Whether evaluating it takes too much work. In that case, it does not hold.
        public var isTooExpensive = false
        /// The condition with the compared values; nil for a closure.
        public let condition: ObjectFilterExplanation?

        private enum Keys: String, CodingKey {
            case name, valueType, holds, tooExpensive, condition
        }

        /// Encodes the verdict. `tooExpensive` is present only if it is true.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(name, forKey: .name)
            try container.encodeIfPresent(valueType, forKey: .valueType)
            try container.encode(holds, forKey: .holds)
            if isTooExpensive { try container.encode(true, forKey: .tooExpensive) }
            try container.encodeIfPresent(condition, forKey: .condition)
        }
    }

    /// A property of both points.
    public struct Both<Value: Sendable & Hashable & Encodable>: Sendable, Hashable, Encodable {
        /// The value of the source.
        public let source: Value
        /// The value of the actor.
        public let actor: Value
    }

    /// The association; nil if there is none.
    public let association: IoAssociation?
    /// The source.
    public let ioSourceId: CoatyUUID
    /// The actor.
    public let ioActorId: CoatyUUID
    /// The value types, which must be equal.
    public let valueTypes: Both<String>
    /// Whether values are raw, which must be equal.
    public let useRawIoValues: Both<Bool>
    /// Whether the two can be associated. If so, the rules decide.
    public let isCompatible: Bool
    /// The rules for the value type, in their order; empty if the two are not compatible.
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
    /// Explains why a source and an actor are associated or not.
    ///
    /// - Returns: nil if the context has no such source or actor.
    public func explain(ioSourceId: CoatyUUID, ioActorId: CoatyUUID) -> IoAssociationExplanation? {
        guard let source = table.source(ioSourceId), let actor = table.actor(ioActorId), let decision else {
            return nil
        }
        let isCompatible = source.kind == actor.kind
        let candidates = isCompatible ? decision.rules.candidates(for: source.kind.valueType).rules : []
        let objects = IoAssociationRule.Objects(source, actor, decision.contextJSON)
        return IoAssociationExplanation(
            association: table.association(ioSourceId, ioActorId).map {
                IoAssociation(ioSourceId: ioSourceId, ioActorId: ioActorId, updateRate: $0.updateRate)
            },
            ioSourceId: ioSourceId,
            ioActorId: ioActorId,
            valueTypes: .init(source: source.kind.valueType.text, actor: actor.kind.valueType.text),
            useRawIoValues: .init(source: source.kind.isRaw, actor: actor.kind.isRaw),
            isCompatible: isCompatible,
            rules: candidates.map { rule in
                let condition: ObjectFilterExplanation? =
                    if case .filter(let condition) = rule.condition {
                        condition.explain { objects[$0] }
                    } else {
                        nil
                    }
                var budget = WorkBudget(steps: RoutingWork.stepsPerPair)
                let verdict = decision.holds(rule, source, actor, &budget)
                return .init(
                    name: rule.name,
                    valueType: rule.valueType,
                    holds: verdict ?? false,
                    isTooExpensive: verdict == nil,
                    condition: condition
                )
            }
        )
    }
}
