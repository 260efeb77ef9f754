/// A controller that finds objects by their ids and caches them.
///
/// A subclass specifies the class of the objects, and their core type if it is not `CoatyObject`:
///
/// ```swift
/// final class UserCache: ObjectCacheController<User> {
///     override var coreType: CoreType { .User }
/// }
/// ```
///
/// A cached object is replaced when it is advertised. It is removed when it or its parent is deadvertised; after a
/// reconnect, since either may have been missed; and when space is needed: the object that was requested longest ago is
/// removed first.
open class ObjectCacheController<Object: CoatyObject>: Controller {
    private struct Entry {
        var object: Object
        var lastUse: UInt64
    }

    /// An object that is being discovered, shared by all its requesters.
    private final class Request {
        var object: Object?
        var task: Task<Void, Never>?
    }

    private var entries: [CoatyUUID: Entry] = [:]
    private var requests: [CoatyUUID: Request] = [:]
    private var lastUse: UInt64 = 0

    /// The core type of the objects.
    open var coreType: CoreType { .CoatyObject }

    /// Maximum number of cached objects.
    open var maximumObjects: Int { 1000 }

    /// Maximum number of objects that are discovered at the same time. Further requests get an error.
    open var maximumRequests: Int { 1000 }

    /// Maximum time to wait for an answer.
    open var timeLimit: Duration { .seconds(5) }

    /// Returns whether an object may be cached. Other objects count as not found.
    open func isIncluded(_ object: Object) -> Bool { true }

    /// Empties the cache and starts to observe changes of objects.
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
            // Changes before a reconnect were missed.
            for await _ in periods.dropFirst() { self?.entries = [:] }
        }
        .disposed(by: disposeBag)
    }

    /// Returns the object with an id: the cached one, or else the first that is discovered. Concurrent requests for the
    /// same object share one answer.
    ///
    /// - Returns: nil if no agent answers within ``timeLimit``, or the communication manager stops.
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

    /// Returns the object of an event; nil if there is none that may be cached.
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

/// The reason why an object can't be requested.
public enum ObjectCacheError: Error, Sendable, Equatable {
    /// The maximum number of objects is already being discovered.
    case tooManyRequests
}
