/// The rules of a router, grouped by value type.
struct IoAssociationRules: Sendable {
    /// All rules, in their order.
    let all: [IoAssociationRule]
    private let ofValueType: [WireName: Candidates]
    private let global: Candidates

    /// The rules that apply to a value type.
    struct Candidates: Sendable {
        let rules: [IoAssociationRule]
        /// The conditions of all rules; nil if one of them is a closure.
        let conditions: RoutingConditions?

        init(_ rules: [IoAssociationRule]) {
            self.rules = rules
            let filters = rules.compactMap(\.filter)
            conditions = filters.count == rules.count ? RoutingConditions(filters) : nil
        }
    }

    init(_ rules: [IoAssociationRule]) {
        all = rules
        global = Candidates(rules.filter { $0.valueType?.isEmpty ?? true })
        ofValueType = Dictionary(grouping: rules.filter { !($0.valueType?.isEmpty ?? true) }) {
            WireName($0.valueType ?? "")
        }.mapValues(Candidates.init)
    }

    /// Returns the rules that apply to a value type: its specific rules or, if there are none, those without a value
    /// type.
    func candidates(for valueType: WireName) -> Candidates { ofValueType[valueType] ?? global }

    /// Returns whether other rules may decide differently on a value type.
    func isTouched(_ valueType: WireName, by new: IoAssociationRules) -> Bool {
        let (old, new) = (candidates(for: valueType).rules, new.candidates(for: valueType).rules)
        return old.count != new.count || zip(old, new).contains { !$0.decidesLike($1) }
    }
}

extension IoAssociationRule {
    /// Returns whether both rules decide the same. Closures cannot be compared.
    fileprivate func decidesLike(_ other: IoAssociationRule) -> Bool {
        guard case .filter(let condition) = condition, case .filter(let otherCondition) = other.condition else {
            return false
        }
        return condition == otherCondition
    }
}
