import Synchronization

/// Runs asynchronous operations one after another, in the order in which they were requested.
///
/// The root of a tree owns the queue of all transitions in the tree. One queue per tree (rather than per coordinator)
/// makes it impossible that a parent waits for its child while the child waits for the parent. The length of the queue
/// is the number of waiting callers.
final class TurnQueue: Sendable {
    private struct State {
        var last: Turn?
        var isClosed = false
    }

    private let state = Mutex(State())

    /// Takes the next place without waiting; nil once the queue is closed.
    ///
    /// The caller must call ``Turn/begin()`` and then ``Turn/end()``.
    func enter(tree: ObjectIdentifier) -> Turn? {
        state.withLock { state in
            guard !state.isClosed else { return nil }
            let turn = Turn(tree: tree, after: state.last)
            state.last = turn
            return turn
        }
    }

    /// Takes a turn that has already begun, to be ended with ``Turn/endUnused()``; nil while another turn is running.
    func enterIfIdle() -> Turn? {
        state.withLock { state in
            guard !state.isClosed, state.last?.hasEnded ?? true else { return nil }
            let turn = Turn(tree: ObjectIdentifier(self), after: nil)
            state.last = turn
            return turn
        }
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Accepts no further turns, and waits for those in the queue.
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

    /// The queue of the tree that this turn belongs to, even if the turn is nested. It is not a reference, because the
    /// queue references its last turn. During a turn, the queue exists; after its end, the identifier is not compared.
    let tree: ObjectIdentifier
    /// Operations that the holder of this turn starts from within it.
    let nested = TurnQueue()
    fileprivate let ended = Gate()
    private let predecessor: Mutex<Turn?>

    fileprivate init(tree: ObjectIdentifier, after predecessor: Turn?) {
        self.tree = tree
        self.predecessor = Mutex(predecessor)
    }

    /// Returns the innermost turn in `tree` that the current task runs in, if it is still running.
    ///
    /// Unstructured tasks inherit task-local values and can outlive the turn in which they were created; then the
    /// nested queue is closed.
    static func enclosing(in tree: TurnQueue) -> Turn? {
        held.last { !$0.nested.isClosed && $0.tree == ObjectIdentifier(tree) }
    }

    var hasEnded: Bool { ended.isOpen }

    /// Waits until all earlier turns have ended.
    func begin() async {
        // Removed, because otherwise a turn would keep all earlier turns in memory.
        let earlier = predecessor.withLock { $0.take() }
        await earlier?.ended.wait()
    }

    /// Waits for the nested operations, then allows the next turn to begin.
    func end() async {
        await nested.close()
        ended.open()
    }

    /// Allows the next turn to begin, if there can be no nested operations.
    func endUnused() {
        ended.open()
    }
}

/// A gate that is closed until it is opened once.
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
