/// The reference implementation's requirements on objects on the wire, by core type.
///
/// The reference implementation accepts and drops objects by these rules. Using the same rules ensures that all agents
/// accept the same objects.
enum ObjectSchema {
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
        for property in base { try property.check(value) }
        for property in properties(of: coreType) { try property.check(value) }
    }

    private static let base: [PropertyRule] = [
        .required("objectType", .nonEmptyString),
        .required("objectId", .nonEmptyString),
        .required("name", .string),
        .optional("parentObjectId", .nonEmptyString),
        .optional("externalId", .nonEmptyString),
        .optional("locationId", .nonEmptyString),
        .optional("isDeactivated", .bool),
    ]

    private static func properties(of coreType: CoreType) -> [PropertyRule] {
        switch coreType {
        case .CoatyObject, .IoContext, .Identity: []
        case .User: user
        case .Annotation: annotation
        case .Task: task
        case .IoNode: ioNode
        case .IoSource: ioSource
        case .IoActor: ioPoint
        case .Log: log
        case .Location: location
        case .Snapshot: snapshot
        }
    }

    private static let annotation: [PropertyRule] = [
        .required("type", .oneOf(AnnotationType.allCases.map(\.rawValue))),
        .required("creatorId", .nonEmptyString),
        .required("creationTimestamp", .number),
        .required("status", .oneOf(AnnotationStatus.allCases.map(\.rawValue))),
        .optional(
            "variants",
            .elements(.object([.required("variant", .nonEmptyString), .required("downloadUrl", .string)]))
        ),
    ]

    private static let task: [PropertyRule] = [
        .required("creatorId", .nonEmptyString),
        .required("creationTimestamp", .number),
        .required("status", .oneOf(TaskStatus.allCases.map(\.rawValue))),
        .optional("startTimestamp", .number),
        .optional("duration", .number),
        .optional("requirements", .object([])),
        .optional("description", .string),
        .optional("assigneeObjectId", .nonEmptyString),
    ]

    private static let ioNode: [PropertyRule] = [
        .optional("ioSources", .elements(.coatyObject(.IoSource))),
        .optional("ioActors", .elements(.coatyObject(.IoActor))),
        .optional("characteristics", .object([])),
    ]

    private static let ioPoint: [PropertyRule] = [
        .required("valueType", .nonEmptyString),
        .optional("externalRoute", .string),
        .optional("updateRate", .nonNegativeNumber),
        .optional("useRawIoValues", .bool),
    ]

    private static let ioSource: [PropertyRule] =
        ioPoint + [
            .optional("updateStrategy", .oneOf(IoSourceBackpressureStrategy.allCases.map(\.rawValue)))
        ]

    private static let log: [PropertyRule] = [
        .required("logLevel", .oneOf(LogLevel.allCases.map(\.rawValue))),
        .required("logMessage", .string),
        .required("logDate", .string),
        .optional("logTags", .nonEmptyStrings),
        .optional("logLabels", .object([])),
        .optional(
            "logHost",
            .object([
                .optional("agentInfo", agentInfo),
                .optional("pid", .number),
                .optional("hostname", .string),
                .optional("userAgent", .string),
            ])
        ),
    ]

    private static let agentInfo: ValueRule = .object([
        .required("packageInfo", .object([.required("name", .string), .required("version", .string)])),
        .required("buildInfo", .object([.required("buildDate", .string), .required("buildMode", .string)])),
        .required("configInfo", .object([.required("serviceHost", .string)])),
    ])

    private static let location: [PropertyRule] = [
        .required(
            "geoLocation",
            .object([
                .required("timestamp", .number),
                .required(
                    "coords",
                    .object([
                        .required("latitude", .number),
                        .required("longitude", .number),
                        .required("accuracy", .number),
                        .optional("altitude", .number),
                        .optional("altitudeAccuracy", .number),
                        .optional("heading", .number),
                        .optional("speed", .number),
                    ])
                ),
            ])
        )
    ]

    private static let snapshot: [PropertyRule] = [
        .required("parentObjectId", .nonEmptyString),
        .required("creationTimestamp", .nonZeroNumber),
        .required("creatorId", .nonEmptyString),
        .optional("tags", .nonEmptyStrings),
        .required("object", .coatyObject(nil)),
    ]

    private static let user: [PropertyRule] = [
        .required("names", userNames),
        .optional("displayName", .string),
        .optional("nickName", .string),
        .optional("title", .string),
        .optional("userType", .string),
        .optional("preferredLanguage", .string),
        .optional("locale", .string),
        .optional("timezone", .string),
        .optional("active", .bool),
        .optional("password", .string),
        .optional("emails", .elements(.object(multiValued))),
        .optional("phoneNumbers", .elements(.object(multiValued))),
        .optional("ims", .elements(.object(multiValued))),
        .optional("photos", .elements(.object(multiValued))),
        .optional("addresses", .elements(.object(multiValued + address))),
        .optional("groups", .elements(.object(multiValued))),
        .optional("entitlements", .array),
        .optional("roles", .nonEmptyStrings),
        .optional("x509Certificates", .nonEmptyStrings),
    ]

    private static let userNames: ValueRule = .userNames([
        .optional("formatted", .nonEmptyString),
        .optional("familyName", .string),
        .optional("givenName", .string),
        .optional("middleName", .string),
        .optional("honorificPrefix", .string),
        .optional("honorificSuffix", .string),
    ])

    private static let multiValued: [PropertyRule] = [
        .required("type", .string),
        .required("value", .string),
        .optional("primary", .bool),
        .optional("display", .string),
    ]

    private static let address: [PropertyRule] = [
        .optional("formatted", .string),
        .optional("streetAddress", .string),
        .optional("locality", .string),
        .optional("region", .string),
        .optional("postalCode", .string),
        .optional("country", .string),
    ]
}
