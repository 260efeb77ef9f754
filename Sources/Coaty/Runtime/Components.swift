/// The components of a container.
public struct Components {
    /// The controllers' names and classes, in the order in which they are created and called.
    public var controllers: KeyValuePairs<String, Controller.Type>
    /// Custom object classes. Listing them here registers each before the first object of its type arrives.
    public var objectTypes: [CoatyObject.Type]

    /// Creates components.
    public init(controllers: KeyValuePairs<String, Controller.Type> = [:], objectTypes: [CoatyObject.Type] = []) {
        self.controllers = controllers
        self.objectTypes = objectTypes
    }
}
