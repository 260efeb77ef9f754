import Coaty

/// The changes of the sensors that a ``ThingSensorObservationObserverController`` has registered.
public struct RegisteredSensorsChangeInfo {
    /// New sensors.
    public let added: [Sensor]
    /// Removed sensors.
    public let removed: [Sensor]
    /// Sensors that were received again; they may be unchanged.
    public let changed: [Sensor]
    /// All current sensors, in no particular order.
    public let total: [Sensor]

    fileprivate let things: [CoatyUUID: SensorRegistry.ThingRecord]

    /// Returns the thing that a sensor belongs to, decoded on each call; nil for a sensor that is not in ``total``.
    public func thing(of sensor: Sensor) -> Thing? {
        guard let thing = sensor.parentObjectId.flatMap({ things[$0] }) else { return nil }
        return try? thing.event.data.object as? Thing
    }
}

/// An observation of a registered sensor.
public struct SensorObservation {
    /// The observation.
    public let obs: Observation
    /// The sensor as it was when the observation was received.
    public let sensor: Sensor
}

/// The changes of the registered sensors, as separate objects for the reader: unchanged sensors are the same objects in
/// all infos.
///
/// The first info is available immediately, with all sensors that are already registered as added. For a slow reader,
/// several changes are merged into one, without loss. The sequence ends when the container is shut down.
public struct RegisteredSensorsChanges: AsyncSequence, Sendable {
    let registries: AsyncStream<SensorRegistry>

    /// Starts reading.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(registries: registries.makeAsyncIterator())
    }

    /// An iterator that compares the registered sensors with those that the reader has seen.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var registries: AsyncStream<SensorRegistry>.Iterator
        private var seen: [CoatyUUID: (revision: UInt64, sensor: Sensor)] = [:]

        fileprivate init(registries: AsyncStream<SensorRegistry>.Iterator) {
            self.registries = registries
        }

        /// Returns the next change; nil at the end.
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

/// Things and their sensors, as events that each reader decodes separately.
struct SensorRegistry: Sendable {
    struct ThingRecord: Sendable {
        let event: AdvertiseEvent
        let parentObjectId: CoatyUUID?
    }

    struct SensorRecord: Sendable {
        let event: AdvertiseEvent
        let thingId: CoatyUUID
        /// A number that changes each time the sensor is received.
        let revision: UInt64
    }

    var things: [CoatyUUID: ThingRecord] = [:]
    var sensors: [CoatyUUID: SensorRecord] = [:]
}

/// An observation that was received on the channel of a registered sensor.
public struct ObservedEvent: Sendable {
    let sensorId: CoatyUUID
    let observation: ChannelEvent
    let sensor: AdvertiseEvent

    var footprint: Int { observation.payload.footprint + sensor.payload.footprint }

    func decode() -> SensorObservation? {
        guard let obs = observation.observation(of: sensorId), let sensor = try? sensor.data.object as? Sensor else {
            return nil
        }
        return SensorObservation(obs: obs, sensor: sensor)
    }
}
