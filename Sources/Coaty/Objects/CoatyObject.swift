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

    /// The properties that all objects have. Each is also a property of the object.
    public final var core: ObjectCore
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
        core = ObjectCore(coreType: coreType, objectType: objectType, objectId: objectId, name: name)
    }

    /// Decodes the properties of all objects.
    public required init(from decoder: any Decoder) throws {
        core = try ObjectCore(from: decoder)
    }

    /// Encodes the properties of all objects, and ``custom``. An absent value is an absent key.
    open func encode(to encoder: any Encoder) throws {
        try core.encode(to: encoder)
        if !custom.isEmpty {
            var rest = encoder.container(keyedBy: JSONKey.self)
            for (name, value) in custom { try rest.encode(value, forKey: JSONKey.name(name)) }
        }
    }

    /// Rules on the wire that the types of the properties do not express; each replaces the rule of the property.
    class var wireExceptions: [PropertyRule] {
        [.required("objectType", .nonEmptyString), .optional("externalId", .nonEmptyString)]
    }

    /// The registered classes by object type.
    private static let registry = Mutex<[String: CoatyObject.Type]>([:])

    /// Registers the class for an object type and returns the object type.
    ///
    /// Call it from an override of ``objectType-type.property``.
    public static func register(objectType: String, with classType: CoatyObject.Type) -> String {
        registry.withLock { $0[objectType] = classType }
        return objectType
    }

    /// Returns the class that is registered for an object type.
    static func registeredClass(forObjectType objectType: String) -> CoatyObject.Type? {
        registry.withLock { $0[objectType] }
    }
}

extension CoatyObject {
    /// The core type.
    public final var coreType: CoreType {
        get { core.coreType }
        set { core.coreType = newValue }
    }

    /// The object type, not empty: the core type's default or an application-defined one, such as `com.example.Job`.
    public final var objectType: String {
        get { core.objectType }
        set { core.objectType = newValue }
    }

    /// Identifies the object in the entire network.
    public final var objectId: CoatyUUID {
        get { core.objectId }
        set { core.objectId = newValue }
    }

    /// A name for people.
    public final var name: String {
        get { core.name }
        set { core.name = newValue }
    }

    /// Identifies the object in a system outside Coaty.
    public final var externalId: String? {
        get { core.externalId }
        set { core.externalId = newValue }
    }

    /// The object that this one belongs to.
    public final var parentObjectId: CoatyUUID? {
        get { core.parentObjectId }
        set { core.parentObjectId = newValue }
    }

    /// The Location object of this object's place.
    public final var locationId: CoatyUUID? {
        get { core.locationId }
        set { core.locationId = newValue }
    }

    /// Whether the object is no longer in use.
    public final var isDeactivated: Bool? {
        get { core.isDeactivated }
        set { core.isDeactivated = newValue }
    }
}
