/// The identity of an agent. It is advertised when the agent joins, and deadvertised when the agent leaves or its
/// connection is lost.
open class Identity: CoatyObject {
    /// `coaty.Identity`
    open override class var objectType: String { CoreType.Identity.objectType }

    /// Creates an identity.
    public init(name: String = "Coaty Agent", objectId: CoatyUUID = .init()) {
        super.init(coreType: .Identity, objectType: CoreType.Identity.objectType, objectId: objectId, name: name)
    }

    /// Decodes an identity.
    public required init(from decoder: any Decoder) throws {
        try super.init(from: decoder)
    }
}
