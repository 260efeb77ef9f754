import Logging
import Synchronization

/// The tracked objects, and the changes that the reader has not yet read.
///
/// Unread changes are merged, so that a slow reader misses no object. The queue is bounded by the number of objects
/// that the reader knows or that exist.
final class ObjectTracker: Sendable {
    struct Change: Sendable {
        enum Kind { case added, changed, removed }

        let kind: Kind
        let object: TrackedObject
        /// Determines the order of the changes.
        let serial: UInt64
    }

    private struct State {
        var objects: [CoatyUUID: TrackedObject] = [:]
        var bytes = 0
        var changes: [CoatyUUID: Change] = [:]
        var lastSerial: UInt64 = 0

        mutating func note(_ kind: Change.Kind, _ object: TrackedObject) {
            lastSerial += 1
            let merged: Change.Kind? =
                switch (changes[object.objectId]?.kind, kind) {
                case (.added, .removed): nil
                case (.added, _): .added
                case (.removed, .added): .changed
                default: kind
                }
            changes[object.objectId] = merged.map { Change(kind: $0, object: object, serial: lastSerial) }
        }

        mutating func remove(_ object: TrackedObject) {
            objects[object.objectId] = nil
            bytes -= object.size
            note(.removed, object)
        }
    }

    private let objectFilter: (@Sendable (CoatyObject) -> Bool)?
    private let logger: Logger
    private let refused = DoublingCounter()
    private let state = Mutex(State())
    private let isChanged: AsyncStream<Void>
    private let change: AsyncStream<Void>.Continuation
    private let sources = Mutex<(subscriptions: [Subscription], request: PendingRequest?, task: Task<Void, Never>?)>(
        ([], nil, nil)
    )

    /// Starts tracking.
    ///
    /// - Parameters:
    ///   - advertisements: the advertised objects.
    ///   - request: discovers the objects; published again in each online period.
    init(
        _ advertisements: EventObservation<AdvertiseEvent>,
        _ request: DiscoverEvent,
        objectFilter: (@Sendable (CoatyObject) -> Bool)?,
        communicationManager: CommunicationManager
    ) {
        self.objectFilter = objectFilter
        logger = communicationManager.logger
        (isChanged, change) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let change = change
        let subscriptions = [
            communicationManager.subscribe(advertisements, onEnd: { change.finish() }) { [weak self] event in
                self?.take(event.payload)
            },
            communicationManager.subscribe(.deadvertise) { [weak self] event in self?.remove(event.data.objectIds) },
        ]
        let periods = communicationManager.onlinePeriods()
        let task = Task { [weak self, weak communicationManager] in
            for await _ in periods {
                guard let communicationManager else { return }
                self?.discover(request, communicationManager)
            }
        }
        // By now, the task may have published the request, which must be kept.
        sources.withLock { sources in
            sources.subscriptions = subscriptions
            sources.task = task
        }
    }

    deinit {
        change.finish()
        sources.withLock { $0.task?.cancel() }
    }

    /// Waits for unread changes and returns them; nil when the communication manager has stopped.
    func next() async -> ObjectLifecycleInfo? {
        for await _ in isChanged {
            let changes = state.withLock { state in
                defer { state.changes = [:] }
                return state.changes.values.sorted { $0.serial < $1.serial }
            }
            if !changes.isEmpty { return ObjectLifecycleInfo(changes) }
        }
        return nil
    }

    private func discover(_ request: DiscoverEvent, _ communicationManager: CommunicationManager) {
        // The next online period repeats the request.
        guard communicationManager.isConnected else { return }
        do throws(CommunicationError) {
            let answers = try communicationManager.publish(request) { [weak self] event in self?.take(event.payload) }
            let previous = sources.withLock { sources in
                defer { sources.request = answers }
                return sources.request
            }
            previous?.cancel()
        } catch {
            logger.warning("objects could not be discovered", metadata: ["error": "\(error)"])
        }
    }

    func take(_ payload: Payload) {
        guard let object = payload.json["object"].flatMap(TrackedObject.init) else { return }
        guard isTracked(object) else { return remove(object.objectId) }
        let isRefused = state.withLock { state in
            let known = state.objects[object.objectId]
            if let known, known.isSame(as: object) { return false }
            let bytes = state.bytes + object.size - (known?.size ?? 0)
            guard known != nil || state.objects.count < ObjectLifecycleController.maximumObjects,
                bytes <= ObjectLifecycleController.maximumBytes
            else { return true }
            state.bytes = bytes
            state.objects[object.objectId] = object
            state.note(known == nil ? .added : .changed, object)
            return false
        }
        if !isRefused {
            change.yield()
        } else if let count = refused.increment() {
            logger.warning("too many objects to track", metadata: ["refused so far": "\(count)"])
        }
    }

    private func isTracked(_ object: TrackedObject) -> Bool {
        guard let objectFilter else { return true }
        do {
            return objectFilter(try object.decoded)
        } catch {
            return false
        }
    }

    private func remove(_ objectId: CoatyUUID) {
        state.withLock { state in
            if let object = state.objects[objectId] { state.remove(object) }
        }
        change.yield()
    }

    /// Removes objects and their children.
    private func remove(_ objectIds: [CoatyUUID]) {
        let ids = Set(objectIds)
        state.withLock { state in
            for object in state.objects.values
            where ids.contains(object.objectId) || object.parentObjectId.map(ids.contains) ?? false {
                state.remove(object)
            }
        }
        change.yield()
    }
}
