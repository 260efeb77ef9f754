/// Business logic of an agent: open for subclasses, which a container creates by the names in its ``Components``.
///
/// Controllers run on the ``ControllerActor``. What a controller observes it sets up in
/// ``onCommunicationManagerStarting()``, and hands it to its ``disposeBag``:
///
/// ```swift
/// override func onCommunicationManagerStarting() {
///     super.onCommunicationManagerStarting()
///     let discovers = communicationManager.observeDiscover()
///     Task {
///         for await event in discovers where event.data.isDiscoveringExternalId() { … }
///     }
///     .disposed(by: disposeBag)
/// }
/// ```
@ControllerActor
open class Controller {
    /// The container that the controller belongs to.
    public let container: Container
    /// The options that the configuration has for the controller.
    public let options: ControllerOptions
    /// The name of the controller in its container.
    public let registeredName: String
    /// Ends with the communication manager's session.
    public nonisolated let disposeBag = DisposeBag()

    /// The container's communication manager.
    public nonisolated var communicationManager: CommunicationManager { container.communicationManager }

    /// Creates a controller; called by the container.
    public required init(container: Container, options: ControllerOptions, registeredName: String) {
        self.container = container
        self.options = options
        self.registeredName = registeredName
    }

    /// Called when all controllers of the container exist.
    open func onInit() {}

    /// Called when the communication manager starts, before it joins the network: observations that are set up here stand
    /// when others see the agent.
    open func onCommunicationManagerStarting() {}

    /// Called when the communication manager stops, before it leaves the network. What is in the ``disposeBag`` ends behind
    /// this.
    open func onCommunicationManagerStopping() {}

    /// Called when all controllers know that the communication manager stops. It leaves the network when they are done.
    func beforeLeaving() async {}

    /// Called when the container is shut down.
    open func onDispose() {}

    /// Adds to a log object before it is published.
    open func extendLogObject(log: Log) {}
}
