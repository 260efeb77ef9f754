/// The executor of containers and controllers. They run one at a time, so that controllers can call each other and keep
/// state without locks. Code that blocks must run elsewhere.
@globalActor
public actor ControllerActor {
    /// The shared instance.
    public static let shared = ControllerActor()
}
