/// How a subscription begins.
struct LaneBeginning: Sendable {
    /// Behind which its client can resume from the first moment on.
    var cursor: StreamCursor?
    /// Events are missing before the first that is told.
    var gap: LaneItem?
    /// The objects that are there.
    var snapshot: ObjectSnapshot?
    /// What has been said before, or while the snapshot is told.
    var backlog: Backlog?
}
