/// Finds objects by their ids, and keeps them.
///
/// A subclass names the class of the objects, and their core type where it is not `CoatyObject`:
///
/// ```swift
/// final class UserCache: ObjectCacheController<User> {
///     override var coreType: CoreType { .User }
/// }
/// ```
///
/// A kept object is replaced when it is advertised. It goes when it or its parent is deadvertised, after a reconnect, since
/// either may have been missed, and when room is needed: the one that was asked for the longest ago goes first.
open class ObjectCacheController<Object: CoatyObject>: Controller {
    private struct Entry {
        var object: Object
        var lastUse: UInt64
    }

    /// An object that is being discovered, for all who ask for it.
    private final class Request {
        var object: Object?
        var task: Task<Void, Never>?
    }

    private var entries: [CoatyUUID: Entry] = [:]
    private var requests: [CoatyUUID: Request] = [:]
    private var lastUse: UInt64 = 0

    /// The core type of the objects.
    open var coreType: CoreType { .CoatyObject }

    /// How many objects are kept.
    open var maximumObjects: Int { 1000 }

    /// How many objects are discovered at the same time; who asks for more gets an error.
    open var maximumRequests: Int { 1000 }

    /// How long an answer is awaited.
    open var timeLimit: Duration { .seconds(5) }

    /// Whether an object is to be kept; one that is not counts as not found.
    open func isIncluded(_ object: Object) -> Bool { true }

    /// Forgets what is kept, and observes what becomes of objects.
    open override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        entries = [:]
        let advertises = communicationManager.observeAdvertise(withCoreType: coreType)
        let deadvertises = communicationManager.observeDeadvertise()
        let periods = communicationManager.onlinePeriods()
        Task { [weak self] in
            for await event in advertises { self?.update(event.payload) }
        }
        .disposed(by: disposeBag)
        Task { [weak self] in
            for await event in deadvertises { self?.remove(event.data.objectIds) }
        }
        .disposed(by: disposeBag)
        Task { [weak self] in
            // Changes of the time before a reconnect were missed.
            for await _ in periods.dropFirst() { self?.entries = [:] }
        }
        .disposed(by: disposeBag)
    }

    /// The object of an id: the one that is kept, else the first that is discovered. Who asks while it is being discovered
    /// waits for the same answer.
    ///
    /// - Returns: nil where nobody answers within ``timeLimit``, or the communication manager stops.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``; ``ObjectCacheError/tooManyRequests``
    public func resolveObject(objectId: CoatyUUID) async throws -> Object? {
        if let object = entries[objectId]?.object {
            entries[objectId]?.lastUse = nextUse()
            return object
        }
        let request = try requests[objectId] ?? discover(objectId)
        await request.task?.value
        return request.object
    }

    private func discover(_ objectId: CoatyUUID) throws -> Request {
        guard requests.count < maximumRequests else { throw ObjectCacheError.tooManyRequests }
        let answers = try communicationManager.publishDiscover(.with(objectId: objectId), timeLimit: timeLimit)
        let request = Request()
        requests[objectId] = request
        request.task = Task { [weak self] in
            for await answer in answers {
                guard let self, let object = object(in: answer.payload) else { continue }
                request.object = object
                keep(object)
                break
            }
            self?.requests[objectId] = nil
        }
        return request
    }

    /// The object of an event; nil where there is none that is to be kept.
    private func object(in payload: Payload) -> Object? {
        guard let object = try? payload.object() as? Object, object.coreType == coreType, isIncluded(object) else {
            return nil
        }
        return object
    }

    private func keep(_ object: Object) {
        if entries[object.objectId] == nil, entries.count >= maximumObjects,
            let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse })
        {
            entries[oldest.key] = nil
        }
        entries[object.objectId] = Entry(object: object, lastUse: nextUse())
    }

    private func update(_ payload: Payload) {
        guard let id = payload.json["object"]?["objectId"]?.string.map(CoatyUUID.init(wire:)), entries[id] != nil
        else { return }
        if let object = object(in: payload) {
            entries[id]?.object = object
        } else {
            entries[id] = nil
        }
    }

    private func remove(_ objectIds: [CoatyUUID]) {
        let ids = Set(objectIds)
        entries = entries.filter { id, entry in
            !ids.contains(id) && !(entry.object.parentObjectId.map(ids.contains) ?? false)
        }
    }

    private func nextUse() -> UInt64 {
        lastUse += 1
        return lastUse
    }
}

/// Why an object can't be asked for.
public enum ObjectCacheError: Error, Sendable, Equatable {
    /// As many objects are being discovered as may.
    case tooManyRequests
}
