/// The state of a coordinator.
///
/// The legal transitions are these; any other request does nothing:
///
///     inactive --start--> active --pause--> paused --resume--> active
///     active or paused --stop--> inactive
///
/// During a transition, the state is still the previous one.
public enum CoordinatorState: Sendable, Hashable {
    /// Not started yet, or stopped; can be started (again).
    case inactive
    /// Started; component and children are working.
    case active
    /// Started, but work is suspended.
    case paused
}

/// A completed change of a coordinator's state, as reported to its observers.
public struct CoordinatorChange: Sendable {
    /// The coordinator that changed: the observed one, or one of its descendants.
    public let coordinator: AnyCoordinator
    /// The previous state.
    public let from: CoordinatorState
    /// The new state.
    public let to: CoordinatorState
}

/// The reason why a coordinator could not be started.
public enum CoordinatorError: Error, Hashable, CustomStringConvertible {
    /// A child can only be started while its parent is active, or by the parent's component in its own `start()`.
    case parentNotActive(parent: String, child: String)
    /// The child is in use: it has another parent, was started individually, or is in its own transition.
    case childInUse(child: String)
    /// `start()` was called from within a transition of the same coordinator, where waiting for it would be a deadlock.
    case startedFromWithin(name: String)

    /// A sentence that contains the names of the coordinators.
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

/// The phase of a coordinator, including transitions between two states.
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
