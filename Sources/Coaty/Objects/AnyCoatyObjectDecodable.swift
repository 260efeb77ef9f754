/// Decodes an object whose class is determined by its content.
///
/// The class is selected in this order (CoatySwift design rationale): the class that is registered for the object type,
/// which ignores undeclared properties; the class of the core type, which keeps undeclared properties in
/// ``CoatyObject/custom``; otherwise, a decoding error.
public struct AnyCoatyObjectDecodable: Decodable {
    /// The object, with its specific class.
    public let object: CoatyObject

    init(object: CoatyObject) {
        self.object = object
    }

    /// Decodes an object of any type.
    public init(from decoder: any Decoder) throws {
        let discriminators = try decoder.container(keyedBy: JSONKey.self)
        let objectType = try discriminators.decode(String.self, forKey: .name("objectType"))
        if let registered = CoatyObject.registeredClass(forObjectType: objectType) {
            object = try registered.init(from: decoder)
            return
        }
        let coreType = try discriminators.decode(CoreType.self, forKey: .name("coreType"))
        let (object, unknown) = try decoder.unknownProperties { try coreType.objectClass.init(from: $0) }
        object.custom = unknown
        self.object = object
    }
}
