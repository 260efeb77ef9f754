import Coaty

/// What has changed in the sensors that a ``ThingSensorObservationObserverController`` has registered.
public struct RegisteredSensorsChangeInfo {
    /// Sensors that are new.
    public let added: [Sensor]
    /// Sensors that are gone.
    public let removed: [Sensor]
    /// Sensors that were received again; they may be as they were.
    public let changed: [Sensor]
    /// All sensors there are now, in no certain order.
    public let total: [Sensor]

    fileprivate let things: [CoatyUUID: SensorRegistry.ThingRecord]

    /// The thing that a sensor belongs to, decoded anew each time; nil for a sensor that is not in ``total``.
    public func thing(of sensor: Sensor) -> Thing? {
        guard let thing = sensor.parentObjectId.flatMap({ things[$0] }) else { return nil }
        return try? thing.event.data.object as? Thing
    }
}

/// What is observed by a registered sensor.
public struct SensorObservation {
    /// The observation.
    public let obs: Observation
    /// The sensor as it was when the observation came.
    public let sensor: Sensor
}

/// Changes of the registered sensors, as objects of the reader's own: those that are kept are the same in all infos.
///
/// The first info comes at once, with all sensors that are registered already as added. For a reader that is behind,
/// several changes become one: nothing is lost. It ends when the container is shut down.
public struct RegisteredSensorsChanges: AsyncSequence, Sendable {
    let registries: AsyncStream<SensorRegistry>

    /// Starts reading.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(registries: registries.makeAsyncIterator())
    }

    /// Compares what is registered with what the reader has seen.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var registries: AsyncStream<SensorRegistry>.Iterator
        private var seen: [CoatyUUID: (revision: UInt64, sensor: Sensor)] = [:]

        fileprivate init(registries: AsyncStream<SensorRegistry>.Iterator) {
            self.registries = registries
        }

        /// The next change; nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> RegisteredSensorsChangeInfo? {
            guard let registry = await registries.next(isolation: actor) else { return nil }
            var added: [Sensor] = []
            var changed: [Sensor] = []
            let removed = seen.filter { registry.sensors[$0.key] == nil }
            for id in removed.keys { seen[id] = nil }
            for (id, record) in registry.sensors where seen[id]?.revision != record.revision {
                guard let sensor = try? record.event.data.object as? Sensor else { continue }
                if seen.updateValue((record.revision, sensor), forKey: id) == nil {
                    added.append(sensor)
                } else {
                    changed.append(sensor)
                }
            }
            return RegisteredSensorsChangeInfo(
                added: added,
                removed: removed.values.map(\.sensor),
                changed: changed,
                total: seen.values.map(\.sensor),
                things: registry.things
            )
        }
    }
}

/// Things and their sensors, as events that everybody decodes for himself.
struct SensorRegistry: Sendable {
    struct ThingRecord: Sendable {
        let event: AdvertiseEvent
        let parentObjectId: CoatyUUID?
    }

    struct SensorRecord: Sendable {
        let event: AdvertiseEvent
        let thingId: CoatyUUID
        /// Another one each time the sensor is received.
        let revision: UInt64
    }

    var things: [CoatyUUID: ThingRecord] = [:]
    var sensors: [CoatyUUID: SensorRecord] = [:]
}

/// An observation that came in through the channel of a registered sensor.
public struct ObservedEvent: Sendable {
    let sensorId: CoatyUUID
    let observation: ChannelEvent
    let sensor: AdvertiseEvent

    func decode() -> SensorObservation? {
        guard let obs = observation.observation(of: sensorId), let sensor = try? sensor.data.object as? Sensor else {
            return nil
        }
        return SensorObservation(obs: obs, sensor: sensor)
    }
}
