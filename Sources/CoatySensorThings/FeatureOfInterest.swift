public import Coaty

/// The subject of observations: a room, a river, an area seen from above. If it is only a place, a Location can be used
/// instead.
///
/// Its properties are those of ``FeatureOfInterestContent``.
open class FeatureOfInterest: ContentObject<FeatureOfInterestContent> {
    /// `coaty.sensorThings.FeatureOfInterest`
    open override class var objectType: String {
        register(objectType: SensorThingsTypes.OBJECT_TYPE_FEATURE_OF_INTEREST, with: FeatureOfInterest.self)
    }

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
        let content = FeatureOfInterestContent(description: description, encodingType: encodingType, metadata: metadata)
        super.init(content, coreType: .CoatyObject, objectType: objectType, objectId: objectId, name: name)
        self.externalId = externalId
        self.parentObjectId = parentObjectId
    }

    /// Decodes the object.
    public required init(from decoder: any Decoder) throws {
        try super.init(from: decoder)
    }
}

/// The properties of a ``FeatureOfInterest``.
public struct FeatureOfInterestContent: CoatyContent, Hashable {
    /// `coaty.sensorThings.FeatureOfInterest`
    public static let objectType = SensorThingsTypes.OBJECT_TYPE_FEATURE_OF_INTEREST

    /// A text for people.
    public var description: String
    /// The encoding of ``metadata``: one of ``EncodingTypes``, or any other.
    public var encodingType: String
    /// The detailed description of the feature.
    public var metadata: AnyCodable

    /// Creates the properties.
    public init(description: String, encodingType: String, metadata: AnyCodable) {
        self.description = description
        self.encodingType = encodingType
        self.metadata = metadata
    }
}
