import Logging
import Synchronization

/// The objects that a controller returns in answers to Discover events.
final class Discoverables: Sendable {
    private struct Entry {
        var answer: ResolveEvent
        let objectType: String
        let coreType: CoreType
        /// Answers Discover events; ended when the communication manager stops.
        var discovers: Subscription?
        /// Distinguishes an object that was advertised again from the earlier one.
        let serial: UInt64
    }

    private let state = Mutex<(entries: [CoatyUUID: Entry], lastSerial: UInt64)>(([:], 0))

    /// Answers Discover events with the object of an Advertise event, until the subscription is released.
    func insert(_ event: AdvertiseEvent, _ communicationManager: CommunicationManager) throws -> Subscription {
        let object = event.payload.json["object"]
        guard let objectId = object?["objectId"]?.string.map(CoatyUUID.init(wire:)),
            let objectType = object?["objectType"]?.string,
            let coreType = object?["coreType"].flatMap({ CoreType($0) })
        else { throw PayloadError.missing("object", in: event.payload.json) }
        let answer = try ResolveEvent(payload: event.payload)
        let (entry, replaced) = state.withLock { state in
            state.lastSerial += 1
            let entry = Entry(answer: answer, objectType: objectType, coreType: coreType, serial: state.lastSerial)
            return (entry, state.entries.updateValue(entry, forKey: objectId))
        }
        replaced?.discovers?.cancel()
        subscribe(objectId, entry, communicationManager)
        return Subscription { [weak self] in self?.remove(objectId, entry.serial) }
    }

    /// Answers Discover events again after the communication manager has stopped and starts again.
    func resume(_ communicationManager: CommunicationManager) {
        for (objectId, entry) in state.withLock(\.entries) {
            subscribe(objectId, entry, communicationManager)
        }
    }

    private func subscribe(_ objectId: CoatyUUID, _ entry: Entry, _ communicationManager: CommunicationManager) {
        // The handler does not keep the entry, which has the subscription that it replaces.
        let (objectType, coreType, serial) = (entry.objectType, entry.coreType, entry.serial)
        let logger = communicationManager.logger
        let discovers = communicationManager.subscribe(.discover) { [weak self] event in
            let asked = event.data
            guard
                asked.isDiscoveringObjectId() && asked.objectId == objectId
                    || asked.isDiscoveringTypes()
                        && (asked.isObjectTypeCompatible(objectType) || asked.isCoreTypeCompatible(coreType)),
                let answer = self?.answer(objectId, serial)
            else { return }
            do {
                try event.resolve(answer)
            } catch {
                logger.warning("a Discover event could not be answered", metadata: ["error": "\(error)"])
            }
        }
        let replaced = state.withLock { state -> Subscription? in
            // If the entry was removed meanwhile, the subscription is not needed.
            guard state.entries[objectId]?.serial == serial else { return discovers }
            defer { state.entries[objectId]?.discovers = discovers }
            return state.entries[objectId]?.discovers
        }
        replaced?.cancel()
    }

    /// Replaces an object in the answers, if it is there.
    func update(_ event: AdvertiseEvent, objectId: CoatyUUID) throws {
        let answer = try ResolveEvent(payload: event.payload)
        state.withLock { $0.entries[objectId]?.answer = answer }
    }

    private func answer(_ objectId: CoatyUUID, _ serial: UInt64) -> ResolveEvent? {
        state.withLock { $0.entries[objectId].flatMap { $0.serial == serial ? $0.answer : nil } }
    }

    private func remove(_ objectId: CoatyUUID, _ serial: UInt64) {
        let removed = state.withLock { state in
            state.entries[objectId]?.serial == serial ? state.entries.removeValue(forKey: objectId) : nil
        }
        removed?.discovers?.cancel()
    }
}
