/// An object whose properties, beyond those of all objects, are the properties of a struct.
///
/// Swift synthesizes the coding of the struct, so each property is written once. It is also a property of the object:
/// `user.displayName` is `user.content.displayName`.
@dynamicMemberLookup
open class ContentObject<Content: Codable>: CoatyObject {
    /// The properties of the type.
    public var content: Content

    /// Creates an object.
    ///
    /// - Parameters:
    ///   - content: the properties of the type.
    ///   - coreType: the core type of the class.
    ///   - objectType: the object type; for a custom class, the registered one.
    ///   - objectId: a new id, or the id of an existing object.
    ///   - name: a name for people.
    public init(_ content: Content, coreType: CoreType, objectType: String, objectId: CoatyUUID, name: String) {
        self.content = content
        super.init(coreType: coreType, objectType: objectType, objectId: objectId, name: name)
    }

    /// Decodes the object.
    public required init(from decoder: any Decoder) throws {
        content = try Content(from: decoder)
        try super.init(from: decoder)
    }

    /// Encodes the object.
    open override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        try content.encode(to: encoder)
    }

    /// A property of the type.
    public final subscript<Value>(dynamicMember property: KeyPath<Content, Value>) -> Value {
        content[keyPath: property]
    }

    /// A property of the type that can be changed.
    public final subscript<Value>(dynamicMember property: WritableKeyPath<Content, Value>) -> Value {
        get { content[keyPath: property] }
        set { content[keyPath: property] = newValue }
    }
}
