/// Where a coordinator stands in its life.
///
/// The legal transitions, any other request does nothing:
///
///     inactive --start--> active --pause--> paused --resume--> active
///     active or paused --stop--> inactive
///
/// While a transition runs, the state is still the one it left.
public enum CoordinatorState: Sendable, Hashable {
    /// Not started yet, or stopped; can be started (again).
    case inactive
    /// Started, component and children at work.
    case active
    /// Started, but holding back work.
    case paused
}

/// A completed change of a coordinator's state, as its observers are told of it.
public struct CoordinatorChange: Sendable {
    /// The coordinator that changed: the observed one, or one of its descendants.
    public let coordinator: AnyCoordinator
    /// The state that it left.
    public let from: CoordinatorState
    /// The state that it is in now.
    public let to: CoordinatorState
}

/// Why a coordinator refused to start.
public enum CoordinatorError: Error, Hashable, CustomStringConvertible {
    /// A child can only be started while its parent is active, or by the parent's component in its own `start()`.
    case parentNotActive(parent: String, child: String)
    /// The child is in use: it has another parent, was started on its own, or is in a transition of its own.
    case childInUse(child: String)
    /// `start()` was called from within a transition of the same coordinator, which it could only wait for forever.
    case startedFromWithin(name: String)

    /// One sentence that names the coordinators.
    public var description: String {
        switch self {
        case .parentNotActive(let parent, let child):
            "coordinator \(child) cannot be started: its parent \(parent) is not active"
        case .childInUse(let child):
            "coordinator \(child) cannot be started as a child: it is in use elsewhere"
        case .startedFromWithin(let name):
            "coordinator \(name) cannot be started from within its own transition"
        }
    }
}

/// Where a coordinator is, including the way between two states.
///
/// Only the task that holds the turn of the tree changes it; see ``TurnQueue``.
enum CoordinatorPhase {
    case inactive
    case starting
    case active
    case pausing
    case paused(byParent: Bool)
    case resuming
    case resumingChildren
    case stopping(from: CoordinatorState)

    var state: CoordinatorState {
        switch self {
        case .inactive, .starting: .inactive
        case .active, .pausing, .resumingChildren: .active
        case .paused, .resuming: .paused
        case .stopping(let origin): origin
        }
    }

    var isChanging: Bool {
        switch self {
        case .inactive, .active, .paused: false
        case .starting, .pausing, .resuming, .resumingChildren, .stopping: true
        }
    }

    /// Whether children stay paused.
    var holdsBack: Bool {
        switch self {
        case .pausing, .paused, .resuming: true
        case .inactive, .starting, .active, .resumingChildren, .stopping: false
        }
    }

    var acceptsChildren: Bool {
        switch self {
        case .starting, .active: true
        case .inactive, .pausing, .paused, .resuming, .resumingChildren, .stopping: false
        }
    }
}
