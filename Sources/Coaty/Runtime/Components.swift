/// What a container is made of.
public struct Components {
    /// The controllers' names and classes, in the order in which they are created and called.
    public var controllers: KeyValuePairs<String, Controller.Type>
    /// Object classes of one's own: to be named here, so that each is registered before the first object of its type comes.
    public var objectTypes: [CoatyObject.Type]

    /// Creates components.
    public init(controllers: KeyValuePairs<String, Controller.Type>, objectTypes: [CoatyObject.Type] = []) {
        self.controllers = controllers
        self.objectTypes = objectTypes
    }
}
