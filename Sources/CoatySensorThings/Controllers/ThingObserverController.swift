public import Coaty

/// A controller that finds things. Agents with things answer with their own controllers.
open class ThingObserverController: Controller {
    /// Discovers all things, once.
    ///
    /// - Parameter timeLimit: the maximum time to wait for answers; nil waits until the sequence is released.
    /// - Throws: `CommunicationError.queueFull(publications:bytes:)`
    public func discoverThings(timeLimit: Duration? = nil) throws -> DecodedEvents<ResolveEvent, Thing> {
        let event = try DiscoverEvent.with(objectTypes: [Thing.objectType])
        return DecodedEvents(try communicationManager.publishDiscover(event, timeLimit: timeLimit)) {
            try? $0.data.object as? Thing
        }
    }

    /// Returns the advertised things.
    public func observeAdvertisedThings() throws -> DecodedEvents<AdvertiseEvent, Thing> {
        DecodedEvents(try communicationManager.observeAdvertise(withObjectType: Thing.objectType)) {
            try? $0.data.object as? Thing
        }
    }

    /// Queries the things at a Location, once. Each answer contains some of them.
    ///
    /// - Parameters:
    ///   - locationId: the Location object.
    ///   - timeLimit: the maximum time to wait for answers; nil waits until the sequence is released.
    /// - Throws: `CommunicationError.queueFull(publications:bytes:)`
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
