public import Coaty

/// The object types of SensorThings, and their classes.
public enum SensorThingsTypes {
    /// The object type of ``FeatureOfInterest``.
    public static let OBJECT_TYPE_FEATURE_OF_INTEREST = "coaty.sensorThings.FeatureOfInterest"
    /// The object type of ``Observation``.
    public static let OBJECT_TYPE_OBSERVATION = "coaty.sensorThings.Observation"
    /// The object type of ``Sensor``.
    public static let OBJECT_TYPE_SENSOR = "coaty.sensorThings.Sensor"
    /// The object type of ``Thing``.
    public static let OBJECT_TYPE_THING = "coaty.sensorThings.Thing"

    /// All classes. Add them to an agent's components: received objects are decoded by them only after registration.
    public static var objectTypes: [CoatyObject.Type] {
        [FeatureOfInterest.self, Observation.self, Sensor.self, Thing.self]
    }
}
