public import Coaty

/// An object of the physical or virtual world that has sensors. Its parent object is the identity of its agent: when
/// the agent is deadvertised, the thing is removed.
open class Thing: CoatyObject {
    /// `coaty.sensorThings.Thing`
    open override class var objectType: String {
        register(objectType: SensorThingsTypes.OBJECT_TYPE_THING, with: Thing.self)
    }

    /// A text for people.
    public var description: String
    /// Application-defined properties.
    public var properties: [String: AnyCodable]?

    /// Creates a thing.
    public init(
        description: String,
        properties: [String: AnyCodable]? = nil,
        name: String,
        objectId: CoatyUUID = .init(),
        externalId: String? = nil,
        parentObjectId: CoatyUUID? = nil,
        locationId: CoatyUUID? = nil,
        objectType: String = Thing.objectType
    ) {
        self.description = description
        self.properties = properties
        super.init(coreType: .CoatyObject, objectType: objectType, objectId: objectId, name: name)
        self.externalId = externalId
        self.parentObjectId = parentObjectId
        self.locationId = locationId
    }

    private enum Keys: String, CodingKey {
        case description, properties
    }

    /// Decodes a thing.
    public required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        description = try container.decode(String.self, forKey: .description)
        properties = try container.decodeIfPresent([String: AnyCodable].self, forKey: .properties)
        try super.init(from: decoder)
    }

    /// Encodes the thing.
    open override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(description, forKey: .description)
        try container.encodeIfPresent(properties, forKey: .properties)
    }
}
