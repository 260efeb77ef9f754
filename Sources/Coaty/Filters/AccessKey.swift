/// A value that a property must have for a condition to hold.
package struct AccessKey: Sendable, Hashable {
    /// The names on the path to the property; empty for the object itself.
    let path: [WireName]
    /// The required value.
    let value: Scalar

    /// Creates the key of objects that have a member with a text.
    package init(member name: String, text: WireName) {
        self.init(path: [WireName(name)], value: .string(text))
    }

    init(path: [WireName], value: Scalar) {
        self.path = path
        self.value = value
    }

    /// The member and its text, if the value is a text and a member of the object itself.
    package var member: (name: String, text: String)? {
        guard path.count == 1, case .string(let text) = value else { return nil }
        return (path[0].text, text.text)
    }

    /// Maximum number of keys of a condition.
    static let maximumCount = 64
    /// Maximum number of names of a path, which bounds the depth of an index.
    static let maximumDepth = 16
    /// Maximum size of a string, in bytes, which bounds the size of an index and the bytes that a search reads.
    static let maximumLength = 256

    /// Returns whether conditions are indexed by a value. All others are evaluated for every object.
    fileprivate static func isIndexed(_ value: Scalar) -> Bool {
        switch value {
        case .null, .bool: true
        case .integer(let integer): integer.magnitude < 1 << 53
        case .unsignedInteger, .double: false
        case .string(let text): text.text.utf8.count <= maximumLength
        }
    }
}

extension CompiledCondition {
    /// Keys of which an object must have at least one for the condition to hold; nil if they are unknown, so that the
    /// condition must be evaluated for every object. A condition with an empty list never holds.
    ///
    /// The keys are necessary but not sufficient: the condition must still be evaluated for objects that have one.
    package var accessKeys: [AccessKey]? { part.accessKeys }
}

extension CompiledCondition.Part {
    fileprivate var accessKeys: [AccessKey]? {
        switch self {
        case .leaf(let leaf): return leaf.accessKeys
        case .and(let parts): return parts.compactMap(\.accessKeys).min { $0.count < $1.count }
        case .or(let parts):
            var keys: Set<AccessKey> = []
            for part in parts {
                guard let more = part.accessKeys else { return nil }
                keys.formUnion(more)
                guard keys.count <= AccessKey.maximumCount else { return nil }
            }
            return Array(keys)
        // `not Equals` and `not NotEquals` also hold for a missing property, so they can't be found by a value.
        case .not, .tooDeep: return nil
        }
    }
}

extension CompiledLeaf {
    fileprivate var accessKeys: [AccessKey]? {
        guard path.names.count <= AccessKey.maximumDepth else { return nil }
        switch (filterOperator, first) {
        case (.Equals, .value(.scalar(let scalar))):
            return AccessKey.isIndexed(scalar) ? [AccessKey(path: path.names, value: scalar)] : nil
        case (.In, .oneOf(let scalars, let others)):
            guard others.isEmpty, scalars.count <= AccessKey.maximumCount, scalars.allSatisfy(AccessKey.isIndexed)
            else {
                return nil
            }
            return scalars.map { AccessKey(path: path.names, value: $0) }
        default: return nil
        }
    }
}
