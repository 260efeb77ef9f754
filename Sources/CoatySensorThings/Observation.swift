public import Coaty

/// An observation of a sensor. Its parent object is the ``Sensor``.
///
/// Its properties are those of ``ObservationContent``.
open class Observation: ContentObject<ObservationContent> {
    /// `coaty.sensorThings.Observation`
    open override class var objectType: String {
        register(objectType: SensorThingsTypes.OBJECT_TYPE_OBSERVATION, with: Observation.self)
    }

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
        let content = ObservationContent(phenomenonTime: phenomenonTime, result: result, resultTime: resultTime)
        super.init(content, coreType: .CoatyObject, objectType: objectType, objectId: objectId, name: name)
        self.resultQuality = resultQuality
        self.validTime = validTime
        self.parameters = parameters
        self.featureOfInterest = featureOfInterest
        self.externalId = externalId
        self.parentObjectId = parentObjectId
    }

    /// Decodes the object.
    public required init(from decoder: any Decoder) throws {
        try super.init(from: decoder)
    }
}

/// The properties of an ``Observation``.
public struct ObservationContent: CoatyContent, Hashable {
    /// `coaty.sensorThings.Observation`
    public static let objectType = SensorThingsTypes.OBJECT_TYPE_OBSERVATION

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

    private enum CodingKeys: String, CodingKey {
        case phenomenonTime, result, resultTime, resultQuality, validTime, parameters
        case featureOfInterest = "featureOfInterestId"
    }

    /// Creates the properties; optional ones can be set afterwards.
    public init(phenomenonTime: CoatyTimestamp, result: AnyCodable, resultTime: CoatyTimestamp) {
        self.phenomenonTime = phenomenonTime
        self.result = result
        self.resultTime = resultTime
    }
}
