import Synchronization

/// An active observation. It ends when it is cancelled or released, and when the communication manager stops.
public final class Subscription: Sendable {
    let ending: Ending

    init(onCancel: @escaping @Sendable () -> Void) { ending = Ending(onCancel) }

    /// Ends the observation. A handler that is running on another thread may finish after this call.
    public func cancel() { ending.reach() }

    deinit { cancel() }
}

/// The actions at the end of an observation or a request.
final class Ending: Sendable {
    /// Nil after the end.
    private let actions: Mutex<[@Sendable () -> Void]?>

    init(_ action: @escaping @Sendable () -> Void) { actions = Mutex([action]) }

    /// Adds an action, which is called at once after the end.
    func append(_ action: @escaping @Sendable () -> Void) {
        let isReached = actions.withLock { actions in
            actions?.append(action)
            return actions == nil
        }
        if isReached { action() }
    }

    /// Calls all actions; does nothing after the first call.
    func reach() {
        for action in actions.withLock({ $0.take() }) ?? [] { action() }
    }
}

/// Why events are missing for an observer although the connection is up.
public enum GapReason: Sendable, Hashable {
    /// The broker may have dropped events, or an event was too large.
    case missed
    /// An event could not be read: it is not valid JSON, is nested deeper than ``JSONDocument/maximumDepth``, or does
    /// not match its pattern. Reported for each such event.
    case invalid

    init(_ error: PayloadError) { self = error.isTooLarge ? .missed : .invalid }
}

/// The observers of one selector.
protocol Dispatching: Sendable {
    /// Decodes a message once and passes it to every observer.
    func deliver(_ message: InboundMessage) throws(PayloadError)
    /// Calls every observer's `onGap`.
    func noteGap(_ reason: GapReason)
    /// - Returns: the removed observer, which the caller must release, and whether no observers are left.
    func remove(_ id: UInt64) -> (observer: (any Sendable)?, isEmpty: Bool)
    /// Calls every observer's `onEnd`.
    func end()
    /// Removes all observers except the permanent ones.
    ///
    /// - Returns: a function that calls their `onEnd` and releases them.
    func removeAll() -> @Sendable () -> Void
    var isEmpty: Bool { get }
    /// Whether an observer stays when the session ends. Only the agent's own observers do.
    var isPermanent: Bool { get }
    /// The observers of the subscription's status.
    var statusObservers: [StatusObserver] { get }
}

/// Decodes an inbound event once for all its observers.
final class Dispatcher<Event: Sendable>: Dispatching {
    struct Observer: Sendable {
        let id: UInt64
        let handler: @Sendable (Event) -> Void
        let onGap: (@Sendable (GapReason) -> Void)?
        let onEnd: (@Sendable () -> Void)?
        let isPermanent: Bool
        let status: StatusObserver?

        func take(_ event: Event) {
            status?.awaitBeginning()
            handler(event)
        }

        func noteGap(_ reason: GapReason) {
            status?.awaitBeginning()
            onGap?(reason)
        }

        func end() {
            status?.awaitBeginning()
            onEnd?()
        }
    }

    private let decode: Decoder
    private let observers = Mutex<[Observer]>([])

    typealias Decoder = @Sendable (InboundMessage) throws(PayloadError) -> Event

    init(decode: @escaping Decoder) {
        self.decode = decode
    }

    func add(_ observer: Observer) {
        observers.withLock { $0.append(observer) }
    }

    func remove(_ id: UInt64) -> (observer: (any Sendable)?, isEmpty: Bool) {
        observers.withLock { observers in
            let observer = observers.firstIndex { $0.id == id }.map { observers.remove(at: $0) }
            return (observer, observers.isEmpty)
        }
    }

    func deliver(_ message: InboundMessage) throws(PayloadError) {
        let event = try decode(message)
        // Handlers run outside the lock: they may publish, subscribe and cancel.
        for observer in observers.withLock(\.self) { observer.take(event) }
    }

    func noteGap(_ reason: GapReason) {
        for observer in observers.withLock(\.self) { observer.noteGap(reason) }
    }

    func removeAll() -> @Sendable () -> Void {
        let removed = observers.withLock { observers in
            defer { observers.removeAll { !$0.isPermanent } }
            return observers.filter { !$0.isPermanent }
        }
        return { for observer in removed { observer.end() } }
    }

    var isEmpty: Bool { observers.withLock(\.isEmpty) }

    var isPermanent: Bool { observers.withLock { $0.contains(where: \.isPermanent) } }

    var statusObservers: [StatusObserver] { observers.withLock { $0.compactMap(\.status) } }

    func end() {
        for observer in observers.withLock(\.self) { observer.end() }
    }
}
