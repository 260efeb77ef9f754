/// The context of an IO router's decisions. The object's name is the context's name on the wire.
open class IoContext: CoatyObject {
    /// `coaty.IoContext`
    open override class var objectType: String { CoreType.IoContext.objectType }

    /// Creates an IO context, with the signature that subclasses of the developer guide call.
    public override init(coreType: CoreType, objectType: String, objectId: CoatyUUID, name: String) {
        super.init(coreType: coreType, objectType: objectType, objectId: objectId, name: name)
    }

    /// Decodes an IO context.
    public required init(from decoder: any Decoder) throws {
        try super.init(from: decoder)
    }
}
