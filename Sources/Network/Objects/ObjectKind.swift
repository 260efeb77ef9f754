package import Coaty

/// An object type, or a core type with all of its object types.
package enum ObjectKind: Sendable, Hashable {
    case core(CoreType)
    case object(WireName)

    /// Returns whether an object is of this kind.
    package func includes(_ object: AliveObject) -> Bool {
        switch self {
        case .core(let coreType): object.coreType == coreType
        case .object(let objectType): object.objectType == objectType
        }
    }
}
