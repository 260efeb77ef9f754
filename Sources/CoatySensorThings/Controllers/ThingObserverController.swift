public import Coaty

/// Finds things. Agents that have things answer by controllers of their own.
open class ThingObserverController: Controller {
    /// Asks for all things, once.
    ///
    /// - Parameter timeLimit: how long answers are awaited; nil waits until the sequence is dropped.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    public func discoverThings(timeLimit: Duration? = nil) throws -> DecodedEvents<ResolveEvent, Thing> {
        let event = try DiscoverEvent.with(objectTypes: [Thing.objectType])
        return DecodedEvents(try communicationManager.publishDiscover(event, timeLimit: timeLimit)) {
            try? $0.data.object as? Thing
        }
    }

    /// Things as they are advertised.
    public func observeAdvertisedThings() throws -> DecodedEvents<AdvertiseEvent, Thing> {
        DecodedEvents(try communicationManager.observeAdvertise(withObjectType: Thing.objectType)) {
            try? $0.data.object as? Thing
        }
    }

    /// Asks for the things at a Location, once. Each answer has some of them.
    ///
    /// - Parameters:
    ///   - locationId: the Location object.
    ///   - timeLimit: how long answers are awaited; nil waits until the sequence is dropped.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    public func queryThingsAtLocation(
        locationId: CoatyUUID,
        timeLimit: Duration? = nil
    ) throws -> DecodedEvents<RetrieveEvent, [Thing]> {
        let event = try QueryEvent.with(objectType: Thing.objectType, "locationId", locationId)
        return DecodedEvents(try communicationManager.publishQuery(event, timeLimit: timeLimit)) {
            try? $0.data.objects.compactMap { $0 as? Thing }
        }
    }
}
