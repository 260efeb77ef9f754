/// The reference implementation's requirements on objects on the wire, by core type.
///
/// The reference implementation accepts and drops objects by these rules. Using the same rules ensures that all agents
/// accept the same objects. The rules follow from the properties of the classes, read by ``PropertyReader``, and from
/// the exceptions that each class declares.
struct ObjectSchema: Sendable {
    private let rules: [PropertyRule]

    private static let schemas = Dictionary(uniqueKeysWithValues: CoreType.allCases.map { ($0, ObjectSchema($0)) })

    private init(_ coreType: CoreType) {
        let all = PropertyReader.properties(of: ObjectCore.self)
        let names = Set(all.map(\.name))
        let own = PropertyReader.properties(of: coreType.objectClass).filter { !names.contains($0.name) }
        // The core type is checked before the others.
        rules = (all + own).filter { $0.name != "coreType" }
            .replaced(by: coreType.objectClass.wireExceptions)
            .filter { $0.isRequired || !$0.rule.allowsAny }
    }

    /// Checks a Coaty object.
    ///
    /// - Parameters:
    ///   - value: the value that should be an object.
    ///   - expected: the required core type; nil allows any.
    static func check(_ value: JSONView, as expected: CoreType?) throws(PayloadError) {
        guard value.kind == .object else { throw .invalid(value, "must be an object") }
        guard let name = value["coreType"] else { throw .missing("coreType", in: value) }
        guard let coreType = CoreType(name) else { throw .invalid(name, CoreType.refusal) }
        if let expected, coreType != expected { throw .invalid(name, "must be \(expected.rawValue)") }
        guard let schema = schemas[coreType] else { return }
        for rule in schema.rules { try rule.check(value) }
    }
}
