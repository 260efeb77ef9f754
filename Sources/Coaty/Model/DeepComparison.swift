/// Compares a value with an operand on all levels, within a budget.
enum DeepComparison {
    typealias Exhausted = FilterBudget.Exhausted

    private static func count(_ view: JSONView, _ budget: inout FilterBudget) throws(Exhausted) {
        try budget.spend(bytes: view.kind == .array || view.kind == .object ? 0 : view.bytes.count)
    }

    /// Whether both are the same value: strings and names byte by byte, numbers by value, members in any order.
    ///
    /// Descends in both at once, and so no deeper than a checked text is nested.
    static func isEqual(_ view: JSONView, _ json: AnyCodable, _ budget: inout FilterBudget) throws(Exhausted) -> Bool {
        try count(view, &budget)
        switch (view.kind, json) {
        case (.null, .null): return true
        case (.bool, .bool(let bool)): return view.bool == bool
        case (.string, .string(let string)): return view.isString(string)
        case (.number, .integer), (.number, .unsignedInteger), (.number, .double):
            return JSONNumbers.compare(AnyCodable(view), json) == 0
        case (.array, .array(let values)):
            var elements = view.elements
            for value in values {
                guard let element = elements.next(), try isEqual(element, value, &budget) else { return false }
            }
            return elements.next() == nil
        case (.object, .object(let values)):
            let members = try members(view, &budget)
            guard members.count == values.count else { return false }
            for (key, value) in values {
                guard let member = members[WireName(key)], try isEqual(member, value, &budget) else { return false }
            }
            return true
        default: return false
        }
    }

    /// Whether a value is among those of an array.
    static func isIncluded(
        _ view: JSONView,
        in values: [AnyCodable],
        _ budget: inout FilterBudget
    ) throws(Exhausted) -> Bool {
        for value in values where try isEqual(view, value, &budget) { return true }
        return false
    }

    /// Whether a value holds all of another, on all levels. An array also contains its elements that are neither arrays nor
    /// objects; on the first level only.
    static func contains(
        _ view: JSONView,
        _ json: AnyCodable,
        isTopLevel: Bool = true,
        _ budget: inout FilterBudget
    ) throws(Exhausted) -> Bool {
        try count(view, &budget)
        switch (view.kind, json) {
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
            for element in view.elements where try isEqual(element, json, &budget) { return true }
            return false
        case (.object, .object(let values)):
            let members = try members(view, &budget)
            for (key, value) in values {
                guard let member = members[WireName(key)], try contains(member, value, isTopLevel: false, &budget)
                else {
                    return false
                }
            }
            return true
        default: return try isEqual(view, json, &budget)
        }
    }

    /// The members of an object; of several with a name the last.
    private static func members(_ view: JSONView, _ budget: inout FilterBudget) throws(Exhausted) -> [WireName:
        JSONView]
    {
        var last: [WireName: JSONView] = [:]
        for (key, value) in view.members {
            try count(key, &budget)
            last[WireName(key.string ?? "")] = value
        }
        return last
    }
}
