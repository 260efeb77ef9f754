public import Coaty

/// An instrument that observes one property of the world. Its parent object is its ``Thing``.
open class Sensor: CoatyObject {
    /// `coaty.sensorThings.Sensor`
    open override class var objectType: String {
        register(objectType: SensorThingsTypes.OBJECT_TYPE_SENSOR, with: Sensor.self)
    }

    /// A text for people.
    public var description: String
    /// The encoding of ``metadata``: one of ``SensorEncodingTypes``, or any other.
    public var encodingType: String
    /// The detailed description of the sensor.
    public var metadata: AnyCodable
    /// The unit of the results.
    public var unitOfMeasurement: UnitOfMeasurement
    /// The kind of the results.
    public var observationType: ObservationType
    /// The area that contains the observed features.
    public var observedArea: Polygon?
    /// The time interval of all observed phenomena.
    public var phenomenonTime: CoatyTimeInterval?
    /// The time interval of all results.
    public var resultTime: CoatyTimeInterval?
    /// The property that all observations measure.
    public var observedProperty: ObservedProperty

    /// Creates a sensor.
    public init(
        description: String,
        encodingType: String,
        metadata: AnyCodable,
        unitOfMeasurement: UnitOfMeasurement,
        observationType: ObservationType,
        observedArea: Polygon? = nil,
        phenomenonTime: CoatyTimeInterval? = nil,
        resultTime: CoatyTimeInterval? = nil,
        observedProperty: ObservedProperty,
        name: String,
        objectId: CoatyUUID = .init(),
        externalId: String? = nil,
        parentObjectId: CoatyUUID? = nil,
        objectType: String = Sensor.objectType
    ) {
        self.description = description
        self.encodingType = encodingType
        self.metadata = metadata
        self.unitOfMeasurement = unitOfMeasurement
        self.observationType = observationType
        self.observedArea = observedArea
        self.phenomenonTime = phenomenonTime
        self.resultTime = resultTime
        self.observedProperty = observedProperty
        super.init(coreType: .CoatyObject, objectType: objectType, objectId: objectId, name: name)
        self.externalId = externalId
        self.parentObjectId = parentObjectId
    }

    private enum Keys: String, CodingKey {
        case description, encodingType, metadata, unitOfMeasurement, observationType
        case observedArea, phenomenonTime, resultTime, observedProperty
    }

    /// Decodes a sensor.
    public required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        description = try container.decode(String.self, forKey: .description)
        encodingType = try container.decode(String.self, forKey: .encodingType)
        metadata = try container.decode(AnyCodable.self, forKey: .metadata)
        unitOfMeasurement = try container.decode(UnitOfMeasurement.self, forKey: .unitOfMeasurement)
        observationType = try container.decode(ObservationType.self, forKey: .observationType)
        observedArea = try container.decodeIfPresent(Polygon.self, forKey: .observedArea)
        phenomenonTime = try container.decodeIfPresent(CoatyTimeInterval.self, forKey: .phenomenonTime)
        resultTime = try container.decodeIfPresent(CoatyTimeInterval.self, forKey: .resultTime)
        observedProperty = try container.decode(ObservedProperty.self, forKey: .observedProperty)
        try super.init(from: decoder)
    }

    /// Encodes the sensor.
    open override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(description, forKey: .description)
        try container.encode(encodingType, forKey: .encodingType)
        try container.encode(metadata, forKey: .metadata)
        try container.encode(unitOfMeasurement, forKey: .unitOfMeasurement)
        try container.encode(observationType, forKey: .observationType)
        try container.encodeIfPresent(observedArea, forKey: .observedArea)
        try container.encodeIfPresent(phenomenonTime, forKey: .phenomenonTime)
        try container.encodeIfPresent(resultTime, forKey: .resultTime)
        try container.encode(observedProperty, forKey: .observedProperty)
    }
}
