/// A place on earth.
open class Location: CoatyObject {
    /// `coaty.Location`
    open override class var objectType: String { CoreType.Location.objectType }

    /// The position of the place.
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

/// A position with its time, as in the W3C Geolocation API.
public struct GeoLocation: Codable, Sendable, Hashable {
    /// The position.
    public var coords: GeoCoordinates
    /// When the position was determined.
    public var timestamp: CoatyTimestamp

    /// Creates a position with its time.
    public init(coords: GeoCoordinates, timestamp: CoatyTimestamp = .nowMillis()) {
        self.coords = coords
        self.timestamp = timestamp
    }
}

/// A position, as in the W3C Geolocation API.
public struct GeoCoordinates: Codable, Sendable, Hashable {
    /// Degrees north.
    public var latitude: Double
    /// Degrees east.
    public var longitude: Double
    /// Height above the ellipsoid, in meters.
    public var altitude: Double?
    /// Accuracy of latitude and longitude: a radius in meters.
    public var accuracy: Double
    /// Accuracy of the altitude, in meters.
    public var altitudeAccuracy: Double?
    /// Direction of travel, in degrees clockwise from north.
    public var heading: Double?
    /// Speed, in meters per second.
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
