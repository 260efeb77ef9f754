import Synchronization

/// Starts, stops, pauses and resumes one component, and the coordinators below it.
///
///     let root = Coordinator(name: "gateway", component: Gateway())
///     root.observe { change in print(change.coordinator.name, change.to) }
///     try await root.start()
///     try await root.start(Coordinator(name: "listener", component: listener))
///     await root.stop()
///
/// `@unchecked Sendable` for the reasons in ``AnyCoordinator``; this class adds only an immutable `Sendable`.
public final class Coordinator<C: Component>: AnyCoordinator, @unchecked Sendable {
    /// The one component that this coordinator owns.
    public let component: C

    /// Creates an inactive coordinator without a parent.
    ///
    /// - Parameters:
    ///   - name: the name for errors and observers; need not be unique.
    ///   - component: the component to start and stop.
    public init(name: String, component: C) {
        self.component = component
        super.init(name: name, lifecycle: component)
    }
}

/// A coordinator of any component: a node in the tree. Every instance is a ``Coordinator``.
///
/// **Order.** A parent comes before its children: they are started after (or in) its component's `start()`, and resumed
/// after it in the order in which they were started; they are paused and stopped before it, in reverse order.
///
/// **One at a time.** All transitions in a tree run one after another, in the order of the calls; a call returns when
/// its transition is complete. See ``Component`` for the calls that are allowed from within a transition. A transition
/// runs in the caller's task and is not interrupted by its cancellation, although components can check for it.
///
/// A tree that was started keeps itself alive until it is stopped.
///
/// `@unchecked Sendable`: only because a class that can be inherited from cannot be checked. The stored properties of
/// this class and its only subclass are immutable and `Sendable`, and all mutable state is inside `Mutex`es. Other
/// modules cannot inherit from it.
public class AnyCoordinator: @unchecked Sendable {
    /// An inactive coordinator has neither parent nor children, except during transitions.
    private struct Record {
        var phase = CoordinatorPhase.inactive
        var parent: AnyCoordinator?
        var children: [AnyCoordinator] = []
    }

    /// The name for errors and observers.
    public final let name: String

    private final let lifecycle: any Component
    private final let turns = TurnQueue()
    private final let observers = ObserverList()
    private final let record = Mutex(Record())

    fileprivate init(name: String, lifecycle: any Component) {
        self.name = name
        self.lifecycle = lifecycle
    }

    /// The state after the last completed transition.
    public final var state: CoordinatorState { phase.state }

    /// The children in the order in which they were started.
    public final var children: [AnyCoordinator] { record.withLock { $0.children } }

    /// Calls `observer` after each change of this coordinator and of all coordinators below it.
    ///
    /// The changes of a tree are reported one at a time, in order. The observers of the changed coordinator are called
    /// first, then those of its parent and so on up, each in the order in which they were added. The transition
    /// continues when the observer returns: it must not block, and can call a coordinator only from a new `Task`, which
    /// then waits for the running transition like any other caller.
    @discardableResult
    public final func observe(_ observer: @escaping @Sendable (CoordinatorChange) -> Void) -> Observation {
        observers.add(observer)
    }

    /// Starts the component. Does nothing unless the coordinator is inactive.
    ///
    /// Only the root of a tree is started with this function; children are started with ``start(_:)``.
    ///
    /// - Throws: the error of the component's `start()`, after the children that it had started were stopped again; or
    ///   ``CoordinatorError/startedFromWithin(name:)``.
    public final func start() async throws {
        if phase.isChanging, Turn.enclosing(in: root.turns) != nil {
            throw CoordinatorError.startedFromWithin(name: name)
        }
        try await inTurn { try await self.activate() }
    }

    /// Stops the children, the last started first, then the component. A stopped child is removed from its parent. Does
    /// nothing if the coordinator is inactive.
    public final func stop() async {
        await perform(on: self) { await self.deactivate() }
    }

    /// Pauses the active children, the last started first, then the component. Does nothing unless the coordinator is
    /// active.
    public final func pause() async {
        await perform(on: self) { await self.suspend(byParent: false) }
    }

    /// Resumes the component, then the children that were paused together with it; a child that was paused individually
    /// stays paused. Does nothing unless the coordinator is paused and its parent, if it has one, is neither paused nor
    /// pausing.
    public final func resume() async {
        await perform(on: self) {
            if self.parent?.phase.holdsBack != true { await self.reactivate() }
        }
    }

    /// Makes `child` the last child of this coordinator and starts it. Does nothing if it is already a child.
    ///
    /// - Throws: the error of the child's `start()` (then the child is not attached); or
    ///   ``CoordinatorError/parentNotActive(parent:child:)``, ``CoordinatorError/childInUse(child:)``.
    public final func start(_ child: AnyCoordinator) async throws {
        try await inTurn {
            guard try self.adopt(child) else { return }
            do {
                try await child.activate()
            } catch {
                child.leaveParent()
                throw error
            }
        }
    }

    /// Stops `child` and removes it from the tree. Does nothing if it is not a child of this coordinator.
    public final func stop(_ child: AnyCoordinator) async {
        await perform(on: child) {
            if child.parent === self { await child.deactivate() }
        }
    }

    /// Pauses `child` like ``pause()``. Does nothing if it is not a child of this coordinator.
    public final func pause(_ child: AnyCoordinator) async {
        await perform(on: child) {
            if child.parent === self { await child.suspend(byParent: false) }
        }
    }

    /// Resumes `child` like ``resume()``. Does nothing if it is not a child of this coordinator.
    public final func resume(_ child: AnyCoordinator) async {
        await perform(on: child) {
            if child.parent === self, !self.phase.holdsBack { await child.reactivate() }
        }
    }

    /// Returns whether `child` is a child of this coordinator. It is one from the beginning of its start to the end of
    /// its stop.
    public final func hasChild(_ child: AnyCoordinator) -> Bool { child.parent === self }

    /// Whether the coordinator is paused, individually or by its parent.
    public final var isPaused: Bool { state == .paused }
}

// MARK: - To the parent

extension AnyCoordinator {
    /// Sends a message to the parent's component; see ``Component/received(_:from:)``. Can be called on any thread, and
    /// returns when the component has received the message.
    ///
    /// - Returns: whether there is a parent.
    @discardableResult
    public final func send(_ message: any Sendable) -> Bool {
        guard let parent else { return false }
        // A task that the component creates is a caller like any other, rather than part of a transition that may be
        // running here.
        Turn.$held.withValue([]) { parent.lifecycle.received(message, from: self) }
        return true
    }

    /// Asks the parent to stop this coordinator, whose work has ended or can't continue. The parent's component
    /// decides; by default the parent stops it. Can be called on any thread. Returns immediately: a stop follows the
    /// transition that may be running.
    ///
    /// - Returns: whether there is a parent.
    @discardableResult
    public final func requestDismissal() -> Bool {
        guard let parent else { return false }
        Turn.$held.withValue([]) {
            guard parent.lifecycle.childRequestedDismissal(self) else { return }
            Task { await parent.stop(self) }
        }
        return true
    }
}

// MARK: - Transitions

// All transitions run while the caller holds the turn of the tree. Steps over children take a nested turn, because
// tasks that the component created may be starting a child at the same time.
extension AnyCoordinator {
    private func activate() async throws {
        guard case .inactive = phase else { return }
        phase = .starting
        do {
            try await lifecycle.start()
        } catch {
            phase = .stopping(from: .inactive)
            await stopChildren()
            phase = .inactive
            throw error
        }
        change(to: .active)
    }

    private func deactivate() async {
        guard !phase.isChanging, state != .inactive else { return }
        phase = .stopping(from: state)
        await stopChildren()
        await lifecycle.stop()
        change(to: .inactive)
    }

    private func stopChildren() async {
        await inTurn {
            for child in self.children.reversed() { await child.deactivate() }
        }
    }

    private func suspend(byParent: Bool) async {
        guard case .active = phase else { return }
        phase = .pausing
        await inTurn {
            for child in self.children.reversed() { await child.suspend(byParent: true) }
        }
        await lifecycle.pause()
        change(to: .paused(byParent: byParent))
    }

    private func reactivate() async {
        guard case .paused = phase else { return }
        phase = .resuming
        await lifecycle.resume()
        change(to: .resumingChildren)
        await inTurn {
            for child in self.children {
                guard case .paused(byParent: true) = child.phase else { continue }
                await child.reactivate()
            }
        }
        phase = .active
    }

    /// Enters `next` and notifies the observers of this coordinator and its ancestors. A coordinator that became
    /// inactive has left its parent.
    private func change(to next: CoordinatorPhase) {
        let change = CoordinatorChange(coordinator: self, from: state, to: next.state)
        let lists = sequence(first: self, next: \.parent).map(\.observers)
        phase = next
        if case .inactive = next { leaveParent() }
        // Tasks that an observer creates are callers like any other, rather than part of this transition.
        Turn.$held.withValue([]) {
            for list in lists { list.notify(change) }
        }
    }
}

// MARK: - Tree

extension AnyCoordinator {
    private var phase: CoordinatorPhase {
        get { record.withLock { $0.phase } }
        set { record.withLock { $0.phase = newValue } }
    }

    private var parent: AnyCoordinator? { record.withLock { $0.parent } }

    private var root: AnyCoordinator {
        var node = self
        while let parent = node.parent { node = parent }
        return node
    }

    private var isChangingBelow: Bool {
        phase.isChanging || children.contains { $0.isChangingBelow }
    }

    /// Attaches `child`; returns false if it is already attached here.
    private func adopt(_ child: AnyCoordinator) throws -> Bool {
        guard child.parent !== self else { return false }
        guard phase.acceptsChildren else {
            throw CoordinatorError.parentNotActive(parent: name, child: child.name)
        }
        // While the child's own queue is held for a moment, no transition of the child can be running. Waiting for it
        // instead could mean waiting for an ancestor of this coordinator, or for one that waits for this one.
        guard let turn = child.turns.enterIfIdle() else { throw CoordinatorError.childInUse(child: child.name) }
        defer { turn.endUnused() }
        let isFree = child.record.withLock { record in
            guard case .inactive = record.phase, record.parent == nil else { return false }
            record.parent = self
            return true
        }
        guard isFree else { throw CoordinatorError.childInUse(child: child.name) }
        record.withLock { $0.children.append(child) }
        return true
    }

    private func leaveParent() {
        let parent = record.withLock { $0.parent.take() }
        parent?.record.withLock { $0.children.removeAll { $0 === self } }
    }
}

// MARK: - Turns

extension AnyCoordinator {
    /// Runs `transition` of `coordinator` in a turn and waits for it, unless the caller is itself part of a transition
    /// of `coordinator` or one below it: then the turn is taken now and run later.
    private func perform(
        on coordinator: AnyCoordinator,
        _ transition: @escaping @Sendable () async -> Void
    ) async {
        let tree = root.turns
        guard Turn.enclosing(in: tree) != nil, coordinator.isChangingBelow,
            let turn = tree.enter(tree: ObjectIdentifier(tree))
        else {
            return await inTurn(transition)
        }
        Task {
            await Turn.$held.withValue([]) {
                if await self.run(in: turn, transition) == nil { await self.inTurn(transition) }
            }
        }
    }

    /// Runs `body` in a turn of the tree or, within a turn, as a nested part of it.
    private func inTurn<R: Sendable>(_ body: () async throws -> R) async rethrows -> R {
        while true {
            let tree = root.turns
            let queue = Turn.enclosing(in: tree)?.nested ?? tree
            guard let turn = queue.enter(tree: ObjectIdentifier(tree)) else { continue }
            if let result = try await run(in: turn, body) { return result }
        }
    }

    /// Waits for `turn` and runs `body` in it. Returns nil, without running `body`, if this coordinator belongs to
    /// another tree by then.
    private func run<R: Sendable>(in turn: Turn, _ body: () async throws -> R) async rethrows -> R? {
        await turn.begin()
        guard ObjectIdentifier(root.turns) == turn.tree else {
            await turn.end()
            return nil
        }
        do {
            let result = try await Turn.$held.withValue(Turn.held + [turn]) { try await body() }
            await turn.end()
            return result
        } catch {
            await turn.end()
            throw error
        }
    }
}
