/// An area, as in GeoJSON (RFC 7946, section 3.1.6).
public struct Polygon: Codable, Sendable, Hashable {
    /// Always `Polygon`; other types are not supported.
    public private(set) var type = GeoJsonType.Polygon
    /// The bounding box of the area: all coordinates of its south-westerly corner, then all of the north-easterly one.
    public var bbox: [Double]?
    /// The outer ring, followed by the holes. The first and the last position of a ring are equal.
    public var coordinates: [[Position]]

    /// Creates an area from its rings.
    public init(coordinates: [[Position]], bbox: [Double]? = nil) {
        self.coordinates = coordinates
        self.bbox = bbox
    }
}

/// The GeoJSON geometries that SensorThings supports.
public enum GeoJsonType: String, Codable, Sendable {
    case Polygon
}

/// A position on earth: degrees east, degrees north and, if known, height in meters (RFC 7946, section 3.1.1).
public typealias Position = [Double]
