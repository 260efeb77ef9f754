/// Changes of tracked objects since the info before.
///
/// Each object stands in one of the lists at most: a reader that is behind gets what has become of it in the end.
public struct ObjectLifecycleInfo: Sendable {
    private let changes: [ObjectTracker.Change]

    init(_ changes: [ObjectTracker.Change]) {
        self.changes = changes
    }

    /// Objects that were advertised or discovered for the first time, decoded anew each time; nil where there are none.
    ///
    /// - Throws: `DecodingError` where an object's class does not understand it.
    public var added: [CoatyObject]? { get throws { try objects(.added) } }

    /// Objects that were advertised or discovered with other properties than before, decoded anew each time; nil where
    /// there are none.
    ///
    /// - Throws: `DecodingError` where an object's class does not understand it.
    public var changed: [CoatyObject]? { get throws { try objects(.changed) } }

    /// Objects that were deadvertised, or no longer pass the filter, as they were last, decoded anew each time; nil where
    /// there are none.
    ///
    /// - Throws: `DecodingError` where an object's class does not understand it.
    public var removed: [CoatyObject]? { get throws { try objects(.removed) } }

    private func objects(_ kind: ObjectTracker.Change.Kind) throws -> [CoatyObject]? {
        let objects = try changes.filter { $0.kind == kind }.map { try $0.object.decoded }
        return objects.isEmpty ? nil : objects
    }
}
