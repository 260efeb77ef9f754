public import Coaty

/// What a sensor observed. Its parent object is the ``Sensor``.
open class Observation: CoatyObject {
    /// `coaty.sensorThings.Observation`
    open override class var objectType: String {
        register(objectType: SensorThingsTypes.OBJECT_TYPE_OBSERVATION, with: self)
    }

    /// When it was observed.
    public var phenomenonTime: CoatyTimestamp
    /// The value; what kind it is of, the sensor's observation type says.
    public var result: AnyCodable
    /// When the value was there.
    public var resultTime: CoatyTimestamp
    /// How good the value is, none of the texts empty.
    public var resultQuality: [String]?
    /// As long as the value may be used.
    public var validTime: CoatyTimeInterval?
    /// The circumstances of the measurement.
    public var parameters: [String: AnyCodable]?
    /// The ``FeatureOfInterest`` or the Location that was observed: `featureOfInterestId` on the wire, as coaty-js has it.
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
