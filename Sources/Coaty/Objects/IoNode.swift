/// An agent's contribution to an IO context: its sources, its actors, and characteristics for routing rules.
///
/// Its name is the context's name, its parent object id is the id of the agent's identity.
open class IoNode: CoatyObject {
    /// `coaty.IoNode`
    open override class var objectType: String { CoreType.IoNode.objectType }

    /// The sources; encoded even if empty.
    public var ioSources: [IoSource]
    /// The actors; encoded even if empty.
    public var ioActors: [IoActor]
    /// Properties for routing rules, as plain JSON values. They are converted when they
    /// are set; encoding throws if JSON can't represent one.
    public var characteristics: [String: Any]? {
        get { jsonCharacteristics?.mapValues(\.value) }
        set { jsonCharacteristics = newValue.map(AnyCodable.members) }
    }
    private var jsonCharacteristics: [String: AnyCodable]?

    /// Creates an IO node for the context with a name.
    public init(
        name: String,
        ioSources: [IoSource] = [],
        ioActors: [IoActor] = [],
        characteristics: [String: Any]? = nil,
        objectType: String = CoreType.IoNode.objectType,
        objectId: CoatyUUID = .init()
    ) {
        self.ioSources = ioSources
        self.ioActors = ioActors
        jsonCharacteristics = characteristics.map(AnyCodable.members)
        super.init(coreType: .IoNode, objectType: objectType, objectId: objectId, name: name)
    }

    private enum Keys: String, CodingKey {
        case ioSources, ioActors, characteristics
    }

    override class var wireExceptions: [PropertyRule] {
        super.wireExceptions + [
            .optional("ioSources", .elements(.coatyObject(.IoSource))),
            .optional("ioActors", .elements(.coatyObject(.IoActor))),
        ]
    }

    /// Decodes an IO node. Missing lists are read as empty.
    public required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        ioSources = try Self.points(container, .ioSources)
        ioActors = try Self.points(container, .ioActors)
        jsonCharacteristics = try container.decodeIfPresent([String: AnyCodable].self, forKey: .characteristics)
        try super.init(from: decoder)
    }

    private static func points<Point: IoPoint>(
        _ container: KeyedDecodingContainer<Keys>,
        _ key: Keys
    ) throws -> [Point] {
        let objects = try container.decodeIfPresent([AnyCoatyObjectDecodable].self, forKey: key) ?? []
        return try objects.map { decoded in
            guard let point = decoded.object as? Point else {
                let context = DecodingError.Context(
                    codingPath: container.codingPath + [key],
                    debugDescription: "expected objects of \(Point.self)"
                )
                throw DecodingError.typeMismatch(Point.self, context)
            }
            return point
        }
    }

    /// Encodes the IO node.
    open override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(ioSources, forKey: .ioSources)
        try container.encode(ioActors, forKey: .ioActors)
        try container.encodeIfPresent(jsonCharacteristics, forKey: .characteristics)
    }
}
