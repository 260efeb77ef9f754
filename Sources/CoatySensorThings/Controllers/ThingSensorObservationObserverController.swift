import Coaty

/// A controller that tracks all things, their sensors and the observations on the sensors' channels.
///
/// On each connect, it requests things, and the sensors of each thing that it finds; it also observes advertised things
/// and sensors. A sensor stays registered until the sensor, its thing or the thing's parent object, the agent, is
/// deadvertised. When the connection is lost, deadvertisements would be missed, so all sensors are removed.
open class ThingSensorObservationObserverController: ThingObserverController {
    /// Maximum number of tracked things; further ones are ignored.
    public nonisolated static let maximumThings = 10_000
    /// Maximum number of tracked sensors; further ones are ignored.
    public nonisolated static let maximumSensors = 10_000

    /// Selects the relevant things; all if there is no filter.
    public var thingFilter: ((Thing) -> Bool)?
    /// Selects the relevant sensors of relevant things; all if there is no filter.
    public var sensorFilter: ((Sensor, Thing) -> Bool)?

    private enum Incoming: Sendable {
        case resolved(ResolveEvent)
        case retrieved(RetrieveEvent)
        case advertised(AdvertiseEvent)
        case deadvertised(DeadvertiseEvent)

        var footprint: Int {
            switch self {
            case .resolved(let event): event.payload.footprint
            case .retrieved(let event): event.payload.footprint
            case .advertised(let event): event.payload.footprint
            case .deadvertised(let event): event.payload.footprint
            }
        }
    }

    private var registry = SensorRegistry()
    private var lastRevision: UInt64 = 0
    private var take: (@Sendable (Incoming) -> Void)?
    private var observed: EventStream<(sensorId: CoatyUUID, event: ChannelEvent)>.Continuation?
    private var discovery: PendingRequest?
    /// The sensor query of each thing.
    private var queries: [CoatyUUID: PendingRequest] = [:]
    /// The channel of each sensor.
    private var channels: [CoatyUUID: Subscription] = [:]
    private let changes = Readers<SensorRegistry>()
    private let observations = Readers<ObservedEvent>()
    private let ignoredObjects = DoublingCounter()

    // MARK: - Reading

    /// The changes of the registered sensors, as a sequence for one reader.
    public var registeredSensorsChangeInfo: RegisteredSensorsChanges {
        RegisteredSensorsChanges(registries: changes.latest(first: registry))
    }

    /// The observations of the registered sensors, as a sequence for one reader. It ends when the container is shut
    /// down.
    public var sensorObservation: DecodedEvents<ObservedEvent, SensorObservation> {
        DecodedEvents(observations.all(size: \.footprint)) { $0.decode() }
    }

    // MARK: - Lifecycle

    /// Starts tracking things and sensors.
    open override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        // One stream for all events, because the order of Advertise and Deadvertise events matters. If it is full, it
        // drops the oldest: for example, if more than 4,096 things answer at once.
        let (events, incoming) = EventStream.makeStream(of: Incoming.self, size: \.footprint)
        let (observed, observing) = EventStream.makeStream(of: (sensorId: CoatyUUID, event: ChannelEvent).self) {
            $0.event.payload.footprint
        }
        let (logger, reports) = (container.logger, DoublingCounter())
        let take = { @Sendable (event: Incoming) in
            guard let dropped = incoming.yield(event), reports.increment() != nil else { return }
            logger.warning(
                "events about things and sensors were dropped, because they arrive too fast",
                metadata: ["dropped": "\(dropped)"]
            )
        }
        self.take = take
        self.observed = observing
        do {
            for objectType in [Thing.objectType, Sensor.objectType] {
                communicationManager.subscribe(try .advertise(withObjectType: objectType)) {
                    take(.advertised($0))
                }
                .disposed(by: disposeBag)
            }
        } catch {
            container.logger.error("things can't be observed", metadata: ["error": "\(error)"])
        }
        communicationManager.subscribe(.deadvertise) { take(.deadvertised($0)) }.disposed(by: disposeBag)
        Task { for await event in events where !Task.isCancelled { received(event) } }.disposed(by: disposeBag)
        Task {
            for await (sensorId, event) in observed where !Task.isCancelled {
                guard let sensor = registry.sensors[sensorId]?.event else { continue }
                observations.yield(ObservedEvent(sensorId: sensorId, observation: event, sensor: sensor))
            }
        }
        .disposed(by: disposeBag)
        let states = communicationManager.getCommunicationState()
        Task {
            var last: Int?
            for await _ in states where !Task.isCancelled {
                // Identified by its number, so that a connection that was lost and re-established counts as a new one.
                let period = communicationManager.onlinePeriod
                guard period == nil || period != last else { continue }
                last = period
                forgetAll()
                if period != nil { discover() }
            }
        }
        .disposed(by: disposeBag)
    }

    /// Removes all things and sensors.
    open override func onCommunicationManagerStopping() {
        super.onCommunicationManagerStopping()
        forgetAll()
        take = nil
        observed = nil
    }

    /// Ends the sequences.
    open override func onDispose() {
        super.onDispose()
        changes.finish()
        observations.finish()
    }

    // MARK: - Receiving

    private func discover() {
        guard let take else { return }
        do {
            let event = try DiscoverEvent.with(objectTypes: [Thing.objectType])
            discovery = try communicationManager.publish(event) { take(.resolved($0)) }
        } catch {
            container.logger.warning("things can't be discovered", metadata: ["error": "\(error)"])
        }
    }

    private func received(_ event: Incoming) {
        let isChanged =
            switch event {
            case .resolved(let event): (try? event.data.object).map(received) ?? false
            case .advertised(let event): (try? event.data.object).map(received) ?? false
            case .retrieved(let event): ((try? event.data.objects) ?? []).map(received).contains(true)
            case .deadvertised(let event): forget(Set(event.data.objectIds))
            }
        if isChanged { changes.yield(registry) }
    }

    /// - Returns: whether sensors have changed.
    private func received(_ object: CoatyObject) -> Bool {
        switch object {
        case let thing as Thing: received(thing)
        case let sensor as Sensor: received(sensor)
        default: false
        }
    }

    private func received(_ thing: Thing) -> Bool {
        let id = thing.objectId
        guard thingFilter?(thing) ?? true else { return forget([id]) }
        let isKnown = registry.things[id] != nil
        guard isKnown || registry.things.count < Self.maximumThings else {
            ignored("things", Self.maximumThings)
            return false
        }
        guard let take else { return false }
        do {
            let query = try QueryEvent.with(objectType: Sensor.objectType, "parentObjectId", id)
            let event = try AdvertiseEvent.with(object: thing)
            // This ends the earlier query for a known thing.
            queries[id] = try communicationManager.publish(query) { take(.retrieved($0)) }
            registry.things[id] = SensorRegistry.ThingRecord(event: event, parentObjectId: thing.parentObjectId)
        } catch {
            container.logger.debug("a thing is ignored", metadata: ["thing": "\(id)", "error": "\(error)"])
        }
        return false
    }

    private func received(_ sensor: Sensor) -> Bool {
        let id = sensor.objectId
        let isKnown = registry.sensors[id] != nil
        guard let observed, let thingId = sensor.parentObjectId, let record = registry.things[thingId],
            let thing = try? record.event.data.object as? Thing, sensorFilter?(sensor, thing) ?? true
        else { return isKnown && forget([id]) }
        guard isKnown || registry.sensors.count < Self.maximumSensors else {
            ignored("sensors", Self.maximumSensors)
            return false
        }
        do {
            let event = try AdvertiseEvent.with(object: sensor)
            if !isKnown {
                channels[id] = communicationManager.subscribe(try .channel(id.string)) { observed.yield((id, $0)) }
            }
            lastRevision += 1
            registry.sensors[id] = SensorRegistry.SensorRecord(event: event, thingId: thingId, revision: lastRevision)
            return true
        } catch {
            container.logger.debug("a sensor is ignored", metadata: ["sensor": "\(id)", "error": "\(error)"])
            return false
        }
    }

    private func ignored(_ objects: String, _ maximum: Int) {
        guard let count = ignoredObjects.increment() else { return }
        container.logger.warning(
            "more than \(maximum) \(objects): further ones are ignored",
            metadata: ["things and sensors ignored so far": "\(count)"]
        )
    }

    // MARK: - Removing

    /// Removes sensors and things, with everything that belongs to them.
    ///
    /// - Returns: whether sensors have changed.
    private func forget(_ ids: Set<CoatyUUID>) -> Bool {
        let things = registry.things.filter { id, thing in
            ids.contains(id) || thing.parentObjectId.map(ids.contains) ?? false
        }
        for id in things.keys {
            registry.things[id] = nil
            queries[id] = nil
        }
        let sensors = registry.sensors.filter { ids.contains($0.key) || things[$0.value.thingId] != nil }
        for id in sensors.keys {
            registry.sensors[id] = nil
            channels[id] = nil
        }
        return !sensors.isEmpty
    }

    private func forgetAll() {
        discovery = nil
        queries = [:]
        channels = [:]
        let isChanged = !registry.sensors.isEmpty
        registry = SensorRegistry()
        if isChanged { changes.yield(registry) }
    }
}
