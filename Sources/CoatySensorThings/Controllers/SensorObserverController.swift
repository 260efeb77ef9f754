public import Coaty

/// A controller that finds sensors and receives their observations: the counterpart of a ``SensorSourceController``.
open class SensorObserverController: Controller {
    /// Returns the observations that a sensor delivers through its channel.
    ///
    /// - Parameters:
    ///   - sensorId: the sensor.
    ///   - channelId: the channel; nil for the channel named after the sensor.
    /// - Throws: `CommunicationError.invalidName(_:)`
    public func observeChanneledObservations(
        sensorId: CoatyUUID,
        channelId: String? = nil
    ) throws -> DecodedEvents<ChannelEvent, Observation> {
        let events = try communicationManager.observeChannel(channelId: channelId ?? sensorId.string)
        return DecodedEvents(events) { $0.observation(of: sensorId) }
    }

    /// Returns the advertised observations of a sensor.
    public func observeAdvertisedObservations(
        sensorId: CoatyUUID
    ) throws -> DecodedEvents<AdvertiseEvent, Observation> {
        DecodedEvents(try communicationManager.observeAdvertise(withObjectType: Observation.objectType)) { event in
            guard let observation = try? event.data.object as? Observation else { return nil }
            return observation.parentObjectId == sensorId ? observation : nil
        }
    }

    /// Returns the advertised sensors.
    public func observeAdvertisedSensors() throws -> DecodedEvents<AdvertiseEvent, Sensor> {
        DecodedEvents(try communicationManager.observeAdvertise(withObjectType: Sensor.objectType)) {
            try? $0.data.object as? Sensor
        }
    }

    /// Discovers all sensors, once.
    ///
    /// - Parameter timeLimit: the maximum time to wait for answers; nil waits until the sequence is released.
    /// - Throws: `CommunicationError.queueFull(publications:bytes:)`
    public func discoverSensors(timeLimit: Duration? = nil) throws -> DecodedEvents<ResolveEvent, Sensor> {
        let event = try DiscoverEvent.with(objectTypes: [Sensor.objectType])
        return DecodedEvents(try communicationManager.publishDiscover(event, timeLimit: timeLimit)) {
            try? $0.data.object as? Sensor
        }
    }

    /// Queries the sensors of a thing, once: those with the thing as parent object. Each answer contains some of them.
    ///
    /// - Parameters:
    ///   - thingId: the thing.
    ///   - timeLimit: the maximum time to wait for answers; nil waits until the sequence is released.
    /// - Throws: `CommunicationError.queueFull(publications:bytes:)`
    public func querySensorsOfThing(
        thingId: CoatyUUID,
        timeLimit: Duration? = nil
    ) throws -> DecodedEvents<RetrieveEvent, [Sensor]> {
        let event = try QueryEvent.with(objectType: Sensor.objectType, "parentObjectId", thingId)
        return DecodedEvents(try communicationManager.publishQuery(event, timeLimit: timeLimit)) {
            try? $0.data.objects.compactMap { $0 as? Sensor }
        }
    }
}

extension ChannelEvent {
    /// Returns the observation in the event; nil if there is none of the sensor.
    func observation(of sensorId: CoatyUUID) -> Observation? {
        guard let observation = try? data.object as? Observation else { return nil }
        return observation.parentObjectId == sensorId ? observation : nil
    }
}
