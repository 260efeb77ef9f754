/// The changes of tracked objects since the previous info.
///
/// Each object is in at most one of the lists: a slow reader gets the final state of each object.
public struct ObjectLifecycleInfo: Sendable {
    private let changes: [ObjectTracker.Change]

    init(_ changes: [ObjectTracker.Change]) {
        self.changes = changes
    }

    /// Objects that were advertised or discovered for the first time, decoded on each access; nil if there are none.
    ///
    /// - Throws: `DecodingError` if an object's class can't decode it.
    public var added: [CoatyObject]? { get throws { try objects(.added) } }

    /// Objects that were advertised or discovered with changed properties, decoded on each access; nil if there are
    /// none.
    ///
    /// - Throws: `DecodingError` if an object's class can't decode it.
    public var changed: [CoatyObject]? { get throws { try objects(.changed) } }

    /// The last versions of objects that were deadvertised or no longer match the filter, decoded on each access; nil
    /// if there are none.
    ///
    /// - Throws: `DecodingError` if an object's class can't decode it.
    public var removed: [CoatyObject]? { get throws { try objects(.removed) } }

    private func objects(_ kind: ObjectTracker.Change.Kind) throws -> [CoatyObject]? {
        let objects = try changes.filter { $0.kind == kind }.map { try $0.object.decoded }
        return objects.isEmpty ? nil : objects
    }
}
