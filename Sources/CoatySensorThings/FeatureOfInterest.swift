public import Coaty

/// The subject of observations: a room, a river, an area seen from above. If it is only a place, a Location can be used
/// instead.
open class FeatureOfInterest: CoatyObject {
    /// `coaty.sensorThings.FeatureOfInterest`
    open override class var objectType: String {
        register(objectType: SensorThingsTypes.OBJECT_TYPE_FEATURE_OF_INTEREST, with: FeatureOfInterest.self)
    }

    /// A text for people.
    public var description: String
    /// The encoding of ``metadata``: one of ``EncodingTypes``, or any other.
    public var encodingType: String
    /// The detailed description of the feature.
    public var metadata: AnyCodable

    /// Creates a feature.
    public init(
        description: String,
        encodingType: String,
        metadata: AnyCodable,
        name: String,
        objectId: CoatyUUID = .init(),
        externalId: String? = nil,
        parentObjectId: CoatyUUID? = nil,
        objectType: String = FeatureOfInterest.objectType
    ) {
        self.description = description
        self.encodingType = encodingType
        self.metadata = metadata
        super.init(coreType: .CoatyObject, objectType: objectType, objectId: objectId, name: name)
        self.externalId = externalId
        self.parentObjectId = parentObjectId
    }

    private enum Keys: String, CodingKey {
        case description, encodingType, metadata
    }

    /// Decodes a feature.
    public required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        description = try container.decode(String.self, forKey: .description)
        encodingType = try container.decode(String.self, forKey: .encodingType)
        metadata = try container.decode(AnyCodable.self, forKey: .metadata)
        try super.init(from: decoder)
    }

    /// Encodes the feature.
    open override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(description, forKey: .description)
        try container.encode(encodingType, forKey: .encodingType)
        try container.encode(metadata, forKey: .metadata)
    }
}
