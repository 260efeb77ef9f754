public import Coaty

/// Finds sensors, and observes what they observe: the counterpart of a ``SensorSourceController``.
open class SensorObserverController: Controller {
    /// What a sensor delivers through its channel.
    ///
    /// - Parameters:
    ///   - sensorId: the sensor.
    ///   - channelId: the channel; nil for the one that is named after the sensor.
    /// - Throws: ``CommunicationError/invalidName(_:)``
    public func observeChanneledObservations(
        sensorId: CoatyUUID,
        channelId: String? = nil
    ) throws -> DecodedEvents<ChannelEvent, Observation> {
        let events = try communicationManager.observeChannel(channelId: channelId ?? sensorId.string)
        return DecodedEvents(events) { $0.observation(of: sensorId) }
    }

    /// What is advertised as observed by a sensor.
    public func observeAdvertisedObservations(
        sensorId: CoatyUUID
    ) throws -> DecodedEvents<AdvertiseEvent, Observation> {
        DecodedEvents(try communicationManager.observeAdvertise(withObjectType: Observation.objectType)) { event in
            guard let observation = try? event.data.object as? Observation else { return nil }
            return observation.parentObjectId == sensorId ? observation : nil
        }
    }

    /// Sensors as they are advertised.
    public func observeAdvertisedSensors() throws -> DecodedEvents<AdvertiseEvent, Sensor> {
        DecodedEvents(try communicationManager.observeAdvertise(withObjectType: Sensor.objectType)) {
            try? $0.data.object as? Sensor
        }
    }

    /// Asks for all sensors, once.
    ///
    /// - Parameter timeLimit: how long answers are awaited; nil waits until the sequence is dropped.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
    public func discoverSensors(timeLimit: Duration? = nil) throws -> DecodedEvents<ResolveEvent, Sensor> {
        let event = try DiscoverEvent.with(objectTypes: [Sensor.objectType])
        return DecodedEvents(try communicationManager.publishDiscover(event, timeLimit: timeLimit)) {
            try? $0.data.object as? Sensor
        }
    }

    /// Asks for the sensors of a thing, once: those whose parent object it is. Each answer has some of them.
    ///
    /// - Parameters:
    ///   - thingId: the thing.
    ///   - timeLimit: how long answers are awaited; nil waits until the sequence is dropped.
    /// - Throws: ``CommunicationError/queueFull(publications:bytes:)``
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
    /// The observation that the event delivers; nil where it is none of the sensor.
    func observation(of sensorId: CoatyUUID) -> Observation? {
        guard let observation = try? data.object as? Observation else { return nil }
        return observation.parentObjectId == sensorId ? observation : nil
    }
}
