/// The encodings of a sensor's metadata; other values are allowed (OGC SensorThings 1.0, table 15).
public class SensorEncodingTypes {
    /// Not specified.
    public static let UNDEFINED = ""
    /// A data sheet as PDF.
    public static let PDF = "application/pdf"
    /// A description in SensorML.
    public static let SENSOR_ML = "http://www.opengis.net/doc/IS/SensorML/2.0"

    private init() {}
}

/// The encodings of a feature's metadata; other values are allowed (OGC SensorThings 1.0, tables 7 and 15).
public final class EncodingTypes: SensorEncodingTypes {
    /// A geometry as GeoJSON.
    public static let GEO_JSON = "application/vnd.geo+json"
}
