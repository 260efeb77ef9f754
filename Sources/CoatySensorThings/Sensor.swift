public import Coaty

/// An instrument that observes one property of the world. Its parent object is its ``Thing``.
///
/// Its properties are those of ``SensorContent``.
open class Sensor: ContentObject<SensorContent> {
    /// `coaty.sensorThings.Sensor`
    open override class var objectType: String {
        register(objectType: SensorThingsTypes.OBJECT_TYPE_SENSOR, with: Sensor.self)
    }

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
        let content = SensorContent(
            description: description,
            encodingType: encodingType,
            metadata: metadata,
            unitOfMeasurement: unitOfMeasurement,
            observationType: observationType,
            observedProperty: observedProperty
        )
        super.init(content, coreType: .CoatyObject, objectType: objectType, objectId: objectId, name: name)
        self.observedArea = observedArea
        self.phenomenonTime = phenomenonTime
        self.resultTime = resultTime
        self.externalId = externalId
        self.parentObjectId = parentObjectId
    }

    /// Decodes the object.
    public required init(from decoder: any Decoder) throws {
        try super.init(from: decoder)
    }
}

/// The properties of a ``Sensor``.
public struct SensorContent: CoatyContent, Hashable {
    /// `coaty.sensorThings.Sensor`
    public static let objectType = SensorThingsTypes.OBJECT_TYPE_SENSOR

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

    /// Creates the properties; optional ones can be set afterwards.
    public init(
        description: String,
        encodingType: String,
        metadata: AnyCodable,
        unitOfMeasurement: UnitOfMeasurement,
        observationType: ObservationType,
        observedProperty: ObservedProperty
    ) {
        self.description = description
        self.encodingType = encodingType
        self.metadata = metadata
        self.unitOfMeasurement = unitOfMeasurement
        self.observationType = observationType
        self.observedProperty = observedProperty
    }
}
