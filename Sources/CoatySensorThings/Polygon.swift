/// An area, as GeoJSON has it (RFC 7946, section 3.1.6).
public struct Polygon: Codable, Sendable, Hashable {
    /// `Polygon`, nothing else is understood.
    public private(set) var type = GeoJsonType.Polygon
    /// The smallest box around the area: all axes of its south-westerly corner, then all of the north-easterly one.
    public var bbox: [Double]?
    /// The outer ring, then the holes. A ring ends with the position that it begins with.
    public var coordinates: [[Position]]

    /// Creates an area from its rings.
    public init(coordinates: [[Position]], bbox: [Double]? = nil) {
        self.coordinates = coordinates
        self.bbox = bbox
    }
}

/// The geometries of GeoJSON that SensorThings knows.
public enum GeoJsonType: String, Codable, Sendable {
    case Polygon
}

/// A place on earth: degrees east, degrees north and, where it is known, meters of height (RFC 7946, section 3.1.1).
public typealias Position = [Double]
