/// Compares a value with a constant on all levels, within a budget.
enum DeepComparison {
    private static func count(_ view: JSONView, _ budget: inout WorkBudget) throws(WorkExceeded) {
        try budget.spend(bytes: view.hasParts ? 0 : view.bytes.count)
    }

    /// Returns whether both values are equal: strings and names byte by byte, numbers by value, members in any order.
    static func isEqual(
        _ value: FilterValue,
        _ constant: Constant,
        _ budget: inout WorkBudget
    ) throws(WorkExceeded) -> Bool {
        switch (value.view.kind, constant) {
        case (.null, .scalar(let scalar)), (.bool, .scalar(let scalar)), (.number, .scalar(let scalar)):
            try count(value.view, &budget)
            return value.scalar == scalar
        default: return try isEqual(value.view, constant, &budget)
        }
    }

    /// Recurses into both values together, so no deeper than a checked text is nested.
    private static func isEqual(
        _ view: JSONView,
        _ constant: Constant,
        _ budget: inout WorkBudget
    ) throws(WorkExceeded) -> Bool {
        try count(view, &budget)
        switch (view.kind, constant) {
        case (.string, .scalar(.string(let text))): return view.isString(text.text)
        case (.null, .scalar(let scalar)), (.bool, .scalar(let scalar)), (.number, .scalar(let scalar)):
            return Scalar(view) == scalar
        case (.array, .array(let values)):
            var elements = view.elements
            for value in values {
                guard let element = elements.next(), try isEqual(element, value, &budget) else { return false }
            }
            return elements.next() == nil
        case (.object, .object(let members)):
            for member in members {
                guard let value = try self.member(member, of: view, &budget),
                    try isEqual(value, member.value, &budget)
                else { return false }
            }
            return view.childCount == members.count
        default: return false
        }
    }

    /// Returns whether a value contains another on all levels. On the first level only, an array also contains its
    /// elements that are neither arrays nor objects.
    static func contains(
        _ view: JSONView,
        _ constant: Constant,
        isTopLevel: Bool = true,
        _ budget: inout WorkBudget
    ) throws(WorkExceeded) -> Bool {
        try count(view, &budget)
        switch (view.kind, constant) {
        case (.array, .array(let values)):
            values: for value in values {
                for element in view.elements where try contains(element, value, isTopLevel: false, &budget) {
                    continue values
                }
                return false
            }
            return true
        case (.array, .object): return false
        case (.array, _):
            guard isTopLevel else { return false }
            for element in view.elements where try isEqual(element, constant, &budget) { return true }
            return false
        case (.object, .object(let members)):
            for member in members {
                guard let value = try self.member(member, of: view, &budget),
                    try contains(value, member.value, isTopLevel: false, &budget)
                else { return false }
            }
            return true
        default: return try isEqual(view, constant, &budget)
        }
    }

    private static func member(
        _ member: Constant.Member,
        of view: JSONView,
        _ budget: inout WorkBudget
    ) throws(WorkExceeded) -> JSONView? {
        try budget.spend(bytes: member.name.text.utf8.count)
        return view.member(named: member.name.text)
    }
}
