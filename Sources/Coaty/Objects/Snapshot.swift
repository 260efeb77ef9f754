/// The state of an object at a point in time. Its parent object id is the object's id.
open class Snapshot: CoatyObject {
    /// `coaty.Snapshot`
    open override class var objectType: String { CoreType.Snapshot.objectType }

    /// When the snapshot was taken; not 0.
    public var creationTimestamp: CoatyTimestamp
    /// The creator of the snapshot.
    public var creatorId: CoatyUUID
    /// Words to find it by; not empty.
    public var tags: [String]?
    /// The object at that time, of any type.
    public var object: CoatyObject

    /// Takes a snapshot of an object.
    public init(
        creationTimestamp: CoatyTimestamp,
        creatorId: CoatyUUID,
        object: CoatyObject,
        tags: [String]? = nil,
        name: String,
        objectType: String = CoreType.Snapshot.objectType,
        objectId: CoatyUUID = .init()
    ) {
        self.creationTimestamp = creationTimestamp
        self.creatorId = creatorId
        self.object = object
        self.tags = tags
        super.init(coreType: .Snapshot, objectType: objectType, objectId: objectId, name: name)
        parentObjectId = object.objectId
    }

    private enum Keys: String, CodingKey {
        case creationTimestamp, creatorId, tags, object
    }

    override class var wireExceptions: [PropertyRule] {
        super.wireExceptions + [
            .required("parentObjectId", .nonEmptyString),
            .required("creationTimestamp", .nonZeroNumber),
        ]
    }

    /// Decodes a snapshot and the object in it.
    public required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        creationTimestamp = try container.decode(CoatyTimestamp.self, forKey: .creationTimestamp)
        creatorId = try container.decode(CoatyUUID.self, forKey: .creatorId)
        tags = try container.decodeIfPresent([String].self, forKey: .tags)
        object = try container.decode(AnyCoatyObjectDecodable.self, forKey: .object).object
        try super.init(from: decoder)
    }

    /// Encodes the snapshot and the object in it.
    open override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(creationTimestamp, forKey: .creationTimestamp)
        try container.encode(creatorId, forKey: .creatorId)
        try container.encodeIfPresent(tags, forKey: .tags)
        try container.encode(object, forKey: .object)
    }
}
