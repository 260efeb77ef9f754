/// The properties that a custom object type adds to those of all objects.
///
/// ```swift
/// struct Job: CoatyContent {
///     static let objectType = "com.example.Job"
///     var urgency: Int
/// }
/// ```
///
/// It encodes an object. Its properties must not have the names of the properties in ``ObjectCore``, nor `core`,
/// `content`, `custom` or `unknown`.
public protocol CoatyContent: Codable, Sendable {
    /// The object type, for example `com.example.Job`.
    static var objectType: String { get }
    /// The core type; by default `CoatyObject`.
    static var coreType: CoreType { get }
}

extension CoatyContent {
    /// `CoatyObject`
    public static var coreType: CoreType { .CoatyObject }
}

/// An object as a value: the properties of all objects, those of its type, and those that its type does not know.
///
/// Properties of the core and of the content are properties of the value: `job.name`, `job.urgency`. There is no class
/// and no registration: any part of a program may read objects of a type with any content.
@dynamicMemberLookup
public struct CoatyValue<Content: CoatyContent>: Sendable {
    /// The properties of all objects.
    public private(set) var core: ObjectCore
    /// The properties of the type.
    public var content: Content
    /// The properties that the type does not know. They are encoded again with the same values; a number that is too
    /// large for a double can't be encoded.
    public var unknown: [String: AnyCodable] = [:]

    /// Creates an object.
    ///
    /// - Parameters:
    ///   - content: the properties of the type.
    ///   - name: a name for people.
    ///   - objectId: a new id, or the id of an existing object.
    public init(_ content: Content, name: String, objectId: CoatyUUID = .init()) {
        core = ObjectCore(
            coreType: Content.coreType,
            objectType: Content.objectType,
            objectId: objectId,
            name: name
        )
        self.content = content
    }

    /// A property of all objects.
    public subscript<Value>(dynamicMember property: KeyPath<ObjectCore, Value>) -> Value { core[keyPath: property] }

    /// A property of all objects that can be changed.
    public subscript<Value>(dynamicMember property: WritableKeyPath<ObjectCore, Value>) -> Value {
        get { core[keyPath: property] }
        set { core[keyPath: property] = newValue }
    }

    /// A property of the type.
    public subscript<Value>(dynamicMember property: KeyPath<Content, Value>) -> Value { content[keyPath: property] }

    /// A property of the type that can be changed.
    public subscript<Value>(dynamicMember property: WritableKeyPath<Content, Value>) -> Value {
        get { content[keyPath: property] }
        set { content[keyPath: property] = newValue }
    }
}

extension CoatyValue: Equatable where Content: Equatable {}
extension CoatyValue: Hashable where Content: Hashable {}

extension CoatyValue: Codable {
    /// Decodes an object. Members that the content neither looks up nor encodes are kept in ``unknown``.
    ///
    /// - Throws: `DecodingError`, also if the object has another type.
    public init(from decoder: any Decoder) throws {
        var core: ObjectCore?
        (content, unknown) = try decoder.unknownProperties { decoder in
            let properties = try ObjectCore(from: decoder)
            guard properties.objectType == Content.objectType, properties.coreType == Content.coreType else {
                let found = "\(properties.objectType) of \(properties.coreType.rawValue)"
                throw DecodingError.typeMismatch(
                    Self.self,
                    .init(
                        codingPath: decoder.codingPath,
                        debugDescription: "expected \(Content.objectType), not \(found)"
                    )
                )
            }
            core = properties
            return try Content(from: decoder)
        }
        self.core = try core ?? ObjectCore(from: decoder)
    }

    /// Encodes the object.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: JSONKey.self)
        // Of properties with the same name the last one counts.
        for (name, value) in unknown { try container.encode(value, forKey: .name(name)) }
        try content.encode(to: encoder)
        try core.encode(to: encoder)
    }
}
