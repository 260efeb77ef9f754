public import Coaty

/// An object of the physical or virtual world that has sensors. Its parent object is the identity of its agent: when
/// the agent is deadvertised, the thing is removed.
///
/// Its properties are those of ``ThingContent``.
open class Thing: ContentObject<ThingContent> {
    /// `coaty.sensorThings.Thing`
    open override class var objectType: String {
        register(objectType: SensorThingsTypes.OBJECT_TYPE_THING, with: Thing.self)
    }

    /// Creates a thing.
    public init(
        description: String,
        properties: [String: AnyCodable]? = nil,
        name: String,
        objectId: CoatyUUID = .init(),
        externalId: String? = nil,
        parentObjectId: CoatyUUID? = nil,
        locationId: CoatyUUID? = nil,
        objectType: String = Thing.objectType
    ) {
        let content = ThingContent(description: description)
        super.init(content, coreType: .CoatyObject, objectType: objectType, objectId: objectId, name: name)
        self.properties = properties
        self.externalId = externalId
        self.parentObjectId = parentObjectId
        self.locationId = locationId
    }

    /// Decodes the object.
    public required init(from decoder: any Decoder) throws {
        try super.init(from: decoder)
    }
}

/// The properties of a ``Thing``.
public struct ThingContent: CoatyContent, Hashable {
    /// `coaty.sensorThings.Thing`
    public static let objectType = SensorThingsTypes.OBJECT_TYPE_THING

    /// A text for people.
    public var description: String
    /// Application-defined properties.
    public var properties: [String: AnyCodable]?

    /// Creates the properties; optional ones can be set afterwards.
    public init(description: String) {
        self.description = description
    }
}
