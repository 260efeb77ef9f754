/// The kind of an observation's result: one of ``ObservationTypes``, or any other URI that the agents agree on.
public struct ObservationType: RawRepresentable, Codable, Sendable, Hashable {
    /// The result is a URI of a category.
    public static let category_observation = Self(definition: "OM_Category_Observation")
    /// The result is an integer.
    public static let count_observation = Self(definition: "OM_CountObservation")
    /// The result is a number.
    public static let measurement = Self(definition: "OM_Measurement")
    /// The result is any JSON value.
    public static let observation = Self(definition: "OM_Observation")
    /// The result is true or false.
    public static let truth_observation = Self(definition: "OM_TruthObservation")

    /// The URI as on the wire.
    public let rawValue: String

    /// Creates the observation type with a URI.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    private init(definition: String) {
        rawValue = "http://www.opengis.net/def/observationType/OGC-OM/2.0/" + definition
    }
}

/// The common observation types (OGC SensorThings 1.0, table 12).
public enum ObservationTypes {
    /// Results are URIs.
    public static let CATEGORY = ObservationType.category_observation
    /// Results are integers.
    public static let COUNT = ObservationType.count_observation
    /// Results are numbers.
    public static let MEASUREMENT = ObservationType.measurement
    /// Results are any JSON values.
    public static let ANY = ObservationType.observation
    /// Results are true or false.
    public static let TRUTH = ObservationType.truth_observation
}
