/// A place on earth.
///
/// Its properties are those of ``LocationContent``.
open class Location: ContentObject<LocationContent> {
    /// `coaty.Location`
    open override class var objectType: String { CoreType.Location.objectType }

    /// Creates a location.
    public init(
        geoLocation: GeoLocation,
        name: String,
        objectType: String = CoreType.Location.objectType,
        objectId: CoatyUUID = .init()
    ) {
        let content = LocationContent(geoLocation: geoLocation)
        super.init(content, coreType: .Location, objectType: objectType, objectId: objectId, name: name)
    }

    /// Decodes the object.
    public required init(from decoder: any Decoder) throws {
        try super.init(from: decoder)
    }
}

/// The properties of a ``Location``.
public struct LocationContent: CoatyContent, Hashable {
    /// `coaty.Location`
    public static let objectType = CoreType.Location.objectType
    /// `Location`
    public static let coreType = CoreType.Location

    /// The position of the place.
    public var geoLocation: GeoLocation

    /// Creates the properties; optional ones can be set afterwards.
    public init(geoLocation: GeoLocation) {
        self.geoLocation = geoLocation
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

extension GeoLocation: WireStructure {}

extension GeoCoordinates: WireStructure {}
