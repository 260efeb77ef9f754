import Coaty

extension QueryEvent {
    /// Creates a query for the objects of a type that are related to an object by one of their ids.
    static func with(objectType: String, _ property: ObjectFilterProperty, _ id: CoatyUUID) throws -> QueryEvent {
        let filter = try ObjectFilter(conditions: .property(property, .equals(.string(id.string))))
        return try .with(objectTypes: [objectType], objectFilter: filter)
    }
}
