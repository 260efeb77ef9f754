/// A requirement on a JSON value. The rules do not restrict properties that they do not mention.
indirect enum ValueRule: Sendable {
    case any
    case string
    case nonEmptyString
    case bool
    case number
    case nonNegativeNumber
    case nonZeroNumber
    /// One of these whole numbers.
    case oneOf([Int])
    case nonEmptyStrings
    case elements(ValueRule)
    case object([PropertyRule])
    /// A Coaty object: of the given core type, or of the one in its `coreType` property.
    case coatyObject(CoreType?)
    /// The name of a core type.
    case coreType
    /// The names of a User: family and given name must appear together, and at least one name is required.
    case userNames([PropertyRule])

    var allowsAny: Bool { if case .any = self { true } else { false } }

    func check(_ value: JSONView) throws(PayloadError) {
        switch self {
        case .any: return
        case .string:
            guard value.kind == .string else { throw .invalid(value, "must be a string") }
        case .nonEmptyString:
            guard value.kind == .string, !value.isEmptyString else {
                throw .invalid(value, "must be a non-empty string")
            }
        case .bool:
            guard value.kind == .bool else { throw .invalid(value, "must be true or false") }
        case .number:
            guard value.kind == .number else { throw .invalid(value, "must be a number") }
        case .nonNegativeNumber:
            guard let number = value.number, number >= 0 else { throw .invalid(value, "must be a number from 0") }
        case .nonZeroNumber:
            guard let number = value.number, number != 0 else { throw .invalid(value, "must be a number other than 0") }
        case .oneOf(let numbers):
            guard let number = value.number, let integer = Int(exactly: number), numbers.contains(integer) else {
                throw .invalid(value, "must be one of \(numbers.map(String.init).joined(separator: ", "))")
            }
        case .nonEmptyStrings:
            try ValueRule.elements(.nonEmptyString).check(value)
        case .elements(let rule):
            guard value.kind == .array else { throw .invalid(value, "must be an array") }
            for element in value.elements { try rule.check(element) }
        case .object(let properties):
            guard value.kind == .object else { throw .invalid(value, "must be an object") }
            for property in properties { try property.check(value) }
        case .coatyObject(let coreType):
            try ObjectSchema.check(value, as: coreType)
        case .coreType:
            guard CoreType(value) != nil else { throw .invalid(value, CoreType.refusal) }
        case .userNames(let properties):
            try ValueRule.object(properties).check(value)
            switch (value["familyName"] != nil, value["givenName"] != nil, value["formatted"] != nil) {
            case (true, true, _), (false, false, true): return
            default: throw .invalid(value, "must have formatted, or familyName and givenName")
            }
        }
    }
}

/// A requirement on a property of a JSON object.
struct PropertyRule: Sendable {
    let name: String
    let isRequired: Bool
    let rule: ValueRule

    static func required(_ name: String, _ rule: ValueRule) -> PropertyRule {
        PropertyRule(name: name, isRequired: true, rule: rule)
    }

    static func optional(_ name: String, _ rule: ValueRule) -> PropertyRule {
        PropertyRule(name: name, isRequired: false, rule: rule)
    }

    func check(_ object: JSONView) throws(PayloadError) {
        if let value = object.member(named: name) {
            try rule.check(value)
        } else if isRequired {
            throw .missing(name, in: object)
        }
    }
}

extension [PropertyRule] {
    /// Returns the rules, with exceptions in place of the rules for the same properties.
    func replaced(by exceptions: [PropertyRule]) -> [PropertyRule] {
        var rules = self
        for exception in exceptions {
            if let index = rules.firstIndex(where: { $0.name == exception.name }) {
                rules[index] = exception
            } else {
                rules.append(exception)
            }
        }
        return rules
    }
}

extension JSONView {
    var isEmptyString: Bool { bytes.count == 2 }
}

extension CoreType {
    /// Creates the core type that a JSON string names.
    init?(_ view: JSONView) {
        guard let name = view.string else { return nil }
        self.init(rawValue: name)
    }
}
