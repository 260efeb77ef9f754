/// Compares a value with an operand on all levels, in a limited number of steps: filters and objects come from others, and
/// arrays within arrays are compared each with each.
struct DeepComparison {
    /// The most steps for one condition. One that takes more does not hold, nor does its opposite. A step is a value that is
    /// looked at, or 16 bytes of one.
    static let maximumSteps = 1_000_000

    struct Exhausted: Error {}

    private var steps = maximumSteps

    private mutating func count(_ view: JSONView) throws(Exhausted) {
        steps -= view.kind == .array || view.kind == .object ? 1 : 1 + view.bytes.count / 16
        if steps < 0 { throw Exhausted() }
    }

    /// Whether both are the same value: strings and names byte by byte, numbers by value, members in any order.
    ///
    /// Descends in both at once, and so no deeper than a checked text is nested.
    mutating func isEqual(_ view: JSONView, _ json: AnyCodable) throws(Exhausted) -> Bool {
        try count(view)
        switch (view.kind, json) {
        case (.null, .null): return true
        case (.bool, .bool(let bool)): return view.bool == bool
        case (.string, .string(let string)): return view.isString(string)
        case (.number, .integer), (.number, .unsignedInteger), (.number, .double):
            return JSONNumbers.compare(AnyCodable(view), json) == 0
        case (.array, .array(let values)):
            var elements = view.elements
            for value in values {
                guard let element = elements.next(), try isEqual(element, value) else { return false }
            }
            return elements.next() == nil
        case (.object, .object(let values)):
            let members = try members(view)
            guard members.count == values.count else { return false }
            for (key, value) in values {
                guard let member = members[TopicLevel(key)], try isEqual(member, value) else { return false }
            }
            return true
        default: return false
        }
    }

    /// Whether a value is among those of an array.
    mutating func isIncluded(_ view: JSONView, in values: [AnyCodable]) throws(Exhausted) -> Bool {
        for value in values where try isEqual(view, value) { return true }
        return false
    }

    /// Whether a value holds all of another, on all levels. An array also contains its elements that are neither arrays nor
    /// objects; on the first level only.
    mutating func contains(_ view: JSONView, _ json: AnyCodable, isTopLevel: Bool = true) throws(Exhausted) -> Bool {
        try count(view)
        switch (view.kind, json) {
        case (.array, .array(let values)):
            values: for value in values {
                for element in view.elements where try contains(element, value, isTopLevel: false) { continue values }
                return false
            }
            return true
        case (.array, .object): return false
        case (.array, _):
            guard isTopLevel else { return false }
            for element in view.elements where try isEqual(element, json) { return true }
            return false
        case (.object, .object(let values)):
            let members = try members(view)
            for (key, value) in values {
                guard let member = members[TopicLevel(key)], try contains(member, value, isTopLevel: false) else {
                    return false
                }
            }
            return true
        default: return try isEqual(view, json)
        }
    }

    /// The members of an object; of several with a name the last.
    private mutating func members(_ view: JSONView) throws(Exhausted) -> [TopicLevel: JSONView] {
        var last: [TopicLevel: JSONView] = [:]
        for (key, value) in view.members {
            try count(key)
            last[TopicLevel(key.string ?? "")] = value
        }
        return last
    }
}
