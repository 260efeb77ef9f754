/// The core types of the Coaty object model.
///
/// The cases are spelled as on the wire, as in the CoatySwift developer guide.
public enum CoreType: String, Codable, Sendable, CaseIterable, Hashable {
    case CoatyObject
    case User
    case Annotation
    case Task
    case IoContext
    case IoNode
    case IoSource
    case IoActor
    case Identity
    case Log
    case Location
    case Snapshot

    /// The default object type of the core type: `coaty.` and its name.
    public var objectType: String { "coaty." + rawValue }

    /// Creates the core type with a default object type; nil if there is none.
    public init?(objectType: String) {
        guard objectType.hasPrefix("coaty.") else { return nil }
        self.init(rawValue: String(objectType.dropFirst("coaty.".count)))
    }

    /// The reason to refuse a value that is not the name of a core type.
    package static let refusal = "must be one of \(allCases.map(\.rawValue).joined(separator: ", "))"

    /// The class that decodes objects of this core type.
    var objectClass: CoatyObject.Type {
        switch self {
        case .CoatyObject: Coaty.CoatyObject.self
        case .User: Coaty.User.self
        case .Annotation: Coaty.Annotation.self
        case .Task: CoatyTask.self
        case .IoContext: Coaty.IoContext.self
        case .IoNode: Coaty.IoNode.self
        case .IoSource: Coaty.IoSource.self
        case .IoActor: Coaty.IoActor.self
        case .Identity: Coaty.Identity.self
        case .Log: Coaty.Log.self
        case .Location: Coaty.Location.self
        case .Snapshot: Coaty.Snapshot.self
        }
    }
}
