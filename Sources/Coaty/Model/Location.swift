/// A place on earth.
open class Location: CoatyObject {
    /// `coaty.Location`
    open override class var objectType: String { CoreType.Location.objectType }

    /// Where the place is.
    public var geoLocation: GeoLocation

    /// Creates a location.
    public init(
        geoLocation: GeoLocation,
        name: String,
        objectType: String = CoreType.Location.objectType,
        objectId: CoatyUUID = .init()
    ) {
        self.geoLocation = geoLocation
        super.init(coreType: .Location, objectType: objectType, objectId: objectId, name: name)
    }

    private enum Keys: String, CodingKey, CaseIterable {
        case geoLocation
    }

    override class var propertyNames: [String] { super.propertyNames + Keys.allCases.map(\.rawValue) }

    /// Decodes a location.
    public required init(from decoder: any Decoder) throws {
        geoLocation = try decoder.container(keyedBy: Keys.self).decode(GeoLocation.self, forKey: .geoLocation)
        try super.init(from: decoder)
    }

    /// Encodes the location.
    open override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(geoLocation, forKey: .geoLocation)
    }
}

/// A position and when it was taken, as the W3C Geolocation API has it.
public struct GeoLocation: Codable, Sendable, Hashable {
    /// The position.
    public var coords: GeoCoordinates
    /// When it was taken.
    public var timestamp: CoatyTimestamp

    /// Creates a position with its time.
    public init(coords: GeoCoordinates, timestamp: CoatyTimestamp = .nowMillis()) {
        self.coords = coords
        self.timestamp = timestamp
    }
}

/// A position, as the W3C Geolocation API has it.
public struct GeoCoordinates: Codable, Sendable, Hashable {
    /// Degrees north.
    public var latitude: Double
    /// Degrees east.
    public var longitude: Double
    /// Meters over the ellipsoid.
    public var altitude: Double?
    /// Radius, in meters, around latitude and longitude.
    public var accuracy: Double
    /// Meters up and down.
    public var altitudeAccuracy: Double?
    /// Degrees clockwise from north.
    public var heading: Double?
    /// Meters a second.
    public var speed: Double?

    /// Creates a position.
    public init(
        latitude: Double,
        longitude: Double,
        altitude: Double? = nil,
        accuracy: Double,
        altitudeAccuracy: Double? = nil,
        heading: Double? = nil,
        speed: Double? = nil
    ) {
        self.latitude = latitude
        self.longitude = longitude
        self.altitude = altitude
        self.accuracy = accuracy
        self.altitudeAccuracy = altitudeAccuracy
        self.heading = heading
        self.speed = speed
    }
}
