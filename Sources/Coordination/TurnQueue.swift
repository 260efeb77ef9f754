import Synchronization

/// Lets asynchronous operations run one after the other, in the order in which they asked.
///
/// The root of a tree owns the queue that all transitions in the tree go through; one queue a tree (not one a
/// coordinator) is what makes it impossible that a parent waits for its child while the child waits for the parent.
/// The queue is as long as there are callers that wait in it.
final class TurnQueue: Sendable {
    private struct State {
        var last: Turn?
        var isClosed = false
    }

    private let state = Mutex(State())

    /// Takes the next place without waiting; nil once the queue is closed.
    ///
    /// Who got a turn must call ``Turn/begin()`` and then ``Turn/end()``.
    func enter(tree: ObjectIdentifier) -> Turn? {
        state.withLock { state in
            guard !state.isClosed else { return nil }
            let turn = Turn(tree: tree, after: state.last)
            state.last = turn
            return turn
        }
    }

    /// Takes a turn that has begun already, to be ended with ``Turn/endUnused()``; nil while another one goes on.
    func enterIfIdle() -> Turn? {
        state.withLock { state in
            guard !state.isClosed, state.last?.hasEnded ?? true else { return nil }
            let turn = Turn(tree: ObjectIdentifier(self), after: nil)
            state.last = turn
            return turn
        }
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Admits nobody from now on, and waits for those that are in the queue.
    func close() async {
        let last = state.withLock { state in
            state.isClosed = true
            return state.last
        }
        await last?.ended.wait()
    }
}

/// One place in a ``TurnQueue``.
final class Turn: Sendable {
    /// The turns that the current task, or the task that created it, runs in; innermost last.
    @TaskLocal static var held: [Turn] = []

    /// The queue of the tree that this turn belongs to, also where the turn is a nested one. Not a reference, as the
    /// queue holds its last turn; while a turn goes on, the queue is alive, and after its end nobody compares it.
    let tree: ObjectIdentifier
    /// Operations that the holder of this turn starts from within it.
    let nested = TurnQueue()
    fileprivate let ended = Gate()
    private let predecessor: Mutex<Turn?>

    fileprivate init(tree: ObjectIdentifier, after predecessor: Turn?) {
        self.tree = tree
        self.predecessor = Mutex(predecessor)
    }

    /// The innermost turn in `tree` that the current task runs in, if it is still going on.
    ///
    /// Unstructured tasks inherit task-local values and can outlive the turn that they were created in; a closed
    /// nested queue tells that this has happened.
    static func enclosing(in tree: TurnQueue) -> Turn? {
        held.last { !$0.nested.isClosed && $0.tree == ObjectIdentifier(tree) }
    }

    var hasEnded: Bool { ended.isOpen }

    /// Returns when all earlier turns have ended.
    func begin() async {
        // Taken out, or a turn would keep all turns before it alive.
        let earlier = predecessor.withLock { $0.take() }
        await earlier?.ended.wait()
    }

    /// Waits for the nested operations, then lets the next turn begin.
    func end() async {
        await nested.close()
        ended.open()
    }

    /// Lets the next turn begin, where nothing can have been nested.
    func endUnused() {
        ended.open()
    }
}

/// Closed until it is opened once, for good.
private final class Gate: Sendable {
    private enum State {
        case closed(waiting: [CheckedContinuation<Void, Never>])
        case open
    }

    private let state = Mutex(State.closed(waiting: []))

    var isOpen: Bool {
        state.withLock { if case .open = $0 { true } else { false } }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                guard case .closed(let waiting) = state else { return true }
                state = .closed(waiting: waiting + [continuation])
                return false
            }
            if isOpen { continuation.resume() }
        }
    }

    func open() {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            guard case .closed(let waiting) = state else { return [] }
            state = .open
            return waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}
