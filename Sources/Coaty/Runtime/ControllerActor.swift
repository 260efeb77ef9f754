/// Where containers and controllers run: one after the other, so that controllers call each other and keep state without
/// further ado. What blocks belongs elsewhere.
@globalActor
public actor ControllerActor {
    /// The one there is.
    public static let shared = ControllerActor()
}
