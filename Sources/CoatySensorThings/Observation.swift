public import Coaty

/// An observation of a sensor. Its parent object is the ``Sensor``.
open class Observation: CoatyObject {
    /// `coaty.sensorThings.Observation`
    open override class var objectType: String {
        register(objectType: SensorThingsTypes.OBJECT_TYPE_OBSERVATION, with: Observation.self)
    }

    /// The time of the observed phenomenon.
    public var phenomenonTime: CoatyTimestamp
    /// The value, whose kind is the sensor's observation type.
    public var result: AnyCodable
    /// When the value was obtained.
    public var resultTime: CoatyTimestamp
    /// Descriptions of the value's quality; no text is empty.
    public var resultQuality: [String]?
    /// The time in which the value may be used.
    public var validTime: CoatyTimeInterval?
    /// The circumstances of the measurement.
    public var parameters: [String: AnyCodable]?
    /// The observed ``FeatureOfInterest`` or Location: `featureOfInterestId` on the wire, as in coaty-js.
    public var featureOfInterest: CoatyUUID?

    /// Creates an observation.
    public init(
        phenomenonTime: CoatyTimestamp,
        result: AnyCodable,
        resultTime: CoatyTimestamp,
        resultQuality: [String]? = nil,
        validTime: CoatyTimeInterval? = nil,
        parameters: [String: AnyCodable]? = nil,
        featureOfInterest: CoatyUUID? = nil,
        name: String,
        objectId: CoatyUUID = .init(),
        externalId: String? = nil,
        parentObjectId: CoatyUUID? = nil,
        objectType: String = Observation.objectType
    ) {
        self.phenomenonTime = phenomenonTime
        self.result = result
        self.resultTime = resultTime
        self.resultQuality = resultQuality
        self.validTime = validTime
        self.parameters = parameters
        self.featureOfInterest = featureOfInterest
        super.init(coreType: .CoatyObject, objectType: objectType, objectId: objectId, name: name)
        self.externalId = externalId
        self.parentObjectId = parentObjectId
    }

    private enum Keys: String, CodingKey {
        case phenomenonTime, result, resultTime, resultQuality, validTime, parameters
        case featureOfInterest = "featureOfInterestId"
    }

    /// Decodes an observation.
    public required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        phenomenonTime = try container.decode(CoatyTimestamp.self, forKey: .phenomenonTime)
        result = try container.decode(AnyCodable.self, forKey: .result)
        resultTime = try container.decode(CoatyTimestamp.self, forKey: .resultTime)
        resultQuality = try container.decodeIfPresent([String].self, forKey: .resultQuality)
        validTime = try container.decodeIfPresent(CoatyTimeInterval.self, forKey: .validTime)
        parameters = try container.decodeIfPresent([String: AnyCodable].self, forKey: .parameters)
        featureOfInterest = try container.decodeIfPresent(CoatyUUID.self, forKey: .featureOfInterest)
        try super.init(from: decoder)
    }

    /// Encodes the observation.
    open override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(phenomenonTime, forKey: .phenomenonTime)
        try container.encode(result, forKey: .result)
        try container.encode(resultTime, forKey: .resultTime)
        try container.encodeIfPresent(resultQuality, forKey: .resultQuality)
        try container.encodeIfPresent(validTime, forKey: .validTime)
        try container.encodeIfPresent(parameters, forKey: .parameters)
        try container.encodeIfPresent(featureOfInterest, forKey: .featureOfInterest)
    }
}
