import Foundation
import Synchronization

/// The base class of all objects that agents exchange.
///
/// It is open for subclasses, as in the developer guide, and therefore not `Sendable`: each observer decodes separate
/// objects. An object whose type has no class is decoded as its core type. Properties that the core type does not
/// declare are kept in ``custom`` and encoded again unchanged.
open class CoatyObject: Codable {
    /// The object type of this class. A subclass returns `register(objectType:with:)`.
    open class var objectType: String { CoreType.CoatyObject.objectType }

    /// The core type.
    public var coreType: CoreType
    /// The object type, not empty: the core type's default or an application-defined one, such as `com.example.Job`.
    public var objectType: String
    /// Identifies the object in the entire network.
    public var objectId: CoatyUUID
    /// A name for people.
    public var name: String
    /// Identifies the object in a system outside Coaty.
    public var externalId: String?
    /// The object that this one belongs to.
    public var parentObjectId: CoatyUUID?
    /// The Location object of this object's place.
    public var locationId: CoatyUUID?
    /// Whether the object is no longer in use.
    public var isDeactivated: Bool?
    /// Properties that the class does not declare, as JSON values. A received object of a registered class has none.
    public var custom: [String: AnyCodable] = [:]

    /// Creates an object.
    ///
    /// - Parameters:
    ///   - coreType: the core type of the class.
    ///   - objectType: the object type; for a custom class, the registered one.
    ///   - objectId: a new id, or the id of an existing object.
    ///   - name: a name for people.
    public init(coreType: CoreType, objectType: String, objectId: CoatyUUID, name: String) {
        self.coreType = coreType
        self.objectType = objectType
        self.objectId = objectId
        self.name = name
    }

    typealias CodingKeys = ObjectCore.CodingKeys

    /// Decodes the properties of all objects.
    public required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        coreType = try container.decode(CoreType.self, forKey: .coreType)
        objectType = try container.decode(String.self, forKey: .objectType)
        objectId = try container.decode(CoatyUUID.self, forKey: .objectId)
        name = try container.decode(String.self, forKey: .name)
        externalId = try container.decodeIfPresent(String.self, forKey: .externalId)
        parentObjectId = try container.decodeIfPresent(CoatyUUID.self, forKey: .parentObjectId)
        locationId = try container.decodeIfPresent(CoatyUUID.self, forKey: .locationId)
        isDeactivated = try container.decodeIfPresent(Bool.self, forKey: .isDeactivated)
    }

    /// Encodes the properties of all objects, and ``custom``. An absent value is an absent key.
    open func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(coreType, forKey: .coreType)
        try container.encode(objectType, forKey: .objectType)
        try container.encode(objectId, forKey: .objectId)
        try container.encode(name, forKey: .name)
        try container.encodeIfPresent(externalId, forKey: .externalId)
        try container.encodeIfPresent(parentObjectId, forKey: .parentObjectId)
        try container.encodeIfPresent(locationId, forKey: .locationId)
        try container.encodeIfPresent(isDeactivated, forKey: .isDeactivated)
        if !custom.isEmpty {
            var rest = encoder.container(keyedBy: JSONKey.self)
            for (name, value) in custom { try rest.encode(value, forKey: JSONKey.name(name)) }
        }
    }

    /// The names of the properties that the class decodes itself.
    class var propertyNames: [String] { CodingKeys.allCases.map(\.rawValue) }

    /// The registered classes by object type.
    private static let registry = Mutex<[String: CoatyObject.Type]>([:])

    /// Registers the class for an object type and returns the object type.
    ///
    /// Call it from an override of ``objectType``.
    public static func register(objectType: String, with classType: CoatyObject.Type) -> String {
        registry.withLock { $0[objectType] = classType }
        return objectType
    }

    /// Returns the class that is registered for an object type.
    static func registeredClass(forObjectType objectType: String) -> CoatyObject.Type? {
        registry.withLock { $0[objectType] }
    }
}
