/// The business logic of an agent. It is open for subclasses, which a container creates by the names in its
/// ``Components``.
///
/// Controllers run on the ``ControllerActor``. A controller sets up its observations in
/// ``onCommunicationManagerStarting()``, and adds them to its ``disposeBag``:
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
    /// The configured options of the controller.
    public let options: ControllerOptions
    /// The name that the controller is registered with in its container.
    public let registeredName: String
    /// Disposed when the communication manager stops.
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

    /// Called when the communication manager starts, before it joins the network: observations that are set up here are
    /// active before other agents see this one.
    open func onCommunicationManagerStarting() {}

    /// Called when the communication manager stops, before it leaves the network. The ``disposeBag`` is disposed after
    /// this.
    open func onCommunicationManagerStopping() {}

    /// Called when all controllers have been notified that the communication manager stops. It leaves the network when
    /// they have returned.
    func beforeLeaving() async {}

    /// Called when the container is shut down.
    open func onDispose() {}

    /// Called before a log object is published, to add to it.
    open func extendLogObject(log: Log) {}
}
