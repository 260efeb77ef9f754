/// The rules of a router, found by value type.
package struct IoAssociationRules: Sendable {
    /// All rules, in their order.
    let all: [IoAssociationRule]
    private let ofValueType: [WireName: [IoAssociationRule]]
    private let global: [IoAssociationRule]

    package init(_ rules: [IoAssociationRule]) {
        all = rules
        global = rules.filter { $0.valueType?.isEmpty ?? true }
        ofValueType = Dictionary(grouping: rules.filter { !($0.valueType?.isEmpty ?? true) }) {
            WireName($0.valueType ?? "")
        }
    }

    /// The rules that count for a value type: its own or, only where there are none, those without one.
    package func candidates(for valueType: WireName) -> [IoAssociationRule] { ofValueType[valueType] ?? global }

    /// Whether a value type may have other verdicts by other rules.
    package func isTouched(_ valueType: WireName, by new: IoAssociationRules) -> Bool {
        let (old, new) = (candidates(for: valueType), new.candidates(for: valueType))
        return old.count != new.count || zip(old, new).contains { !$0.decidesLike($1) }
    }
}

extension IoAssociationRule {
    /// Whether both decide alike. Closures cannot be compared.
    fileprivate func decidesLike(_ other: IoAssociationRule) -> Bool {
        guard case .filter(let condition) = condition, case .filter(let otherCondition) = other.condition else {
            return false
        }
        return condition == otherCondition
    }
}
