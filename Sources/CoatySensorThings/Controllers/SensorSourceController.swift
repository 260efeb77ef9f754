public import Coaty

/// A controller that represents sensors: it advertises them, answers Discover and Query events for them, and publishes
/// their observations.
///
/// Sensors are registered by ``registerSensor(sensor:io:observationPublicationType:samplingInterval:)``, or from the
/// option `sensors`: an array of ``SensorDefinition``. Further options, which are false by default:
///
/// - `ignoreSensorDiscoverEvents`: Discover events are not answered.
/// - `ignoreSensorQueryEvents`: Query events are not answered.
/// - `skipSensorAdvertise`: sensors are not advertised.
/// - `skipSensorDeadvertise`: unregistered sensors are not deadvertised.
open class SensorSourceController: Controller {
    struct Registration {
        let container: SensorContainer
        let isChanneled: Bool
        /// The interval of automatically published observations.
        let interval: Duration?
        let values = Readers<AnyCodable>()
        var publisher: Task<Void, Never>?
    }

    var registrations: [CoatyUUID: Registration] = [:]
    private var isStarted = false

    // MARK: - Lifecycle

    /// Registers the sensors of the options. Errors are logged.
    open override func onInit() {
        super.onInit()
        guard let option = options.extra["sensors"] else { return }
        guard let definitions = option as? [SensorDefinition] else {
            container.logger.error("the option sensors is no array of SensorDefinition")
            return
        }
        for definition in definitions {
            do {
                try registerSensor(
                    sensor: definition.sensor,
                    io: definition.io.init(parameters: definition.parameters),
                    observationPublicationType: definition.observationPublicationType,
                    samplingInterval: definition.samplingInterval
                )
            } catch {
                log("a sensor of the options can't be registered", definition.sensor.objectId, error)
            }
        }
    }

    /// Advertises the sensors in each online period, because observers discard them between periods; answers requests;
    /// reads at intervals.
    open override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        isStarted = true
        if !isSet("ignoreSensorDiscoverEvents") {
            let discovers = communicationManager.observeDiscover()
            Task { for await event in discovers where !Task.isCancelled { answer(event) } }.disposed(by: disposeBag)
        }
        if !isSet("ignoreSensorQueryEvents") {
            let queries = communicationManager.observeQuery()
            Task { for await event in queries where !Task.isCancelled { answer(event) } }.disposed(by: disposeBag)
        }
        let periods = communicationManager.onlinePeriods()
        Task {
            for await _ in periods where !Task.isCancelled { for sensor in registeredSensors { advertise(sensor) } }
        }
        .disposed(by: disposeBag)
        for id in registrations.keys { startPublisher(of: id) }
    }

    /// Ends the activities of the start. Sensors stay registered.
    open override func onCommunicationManagerStopping() {
        super.onCommunicationManagerStopping()
        isStarted = false
    }

    // MARK: - Sensors

    /// All registered sensors with their hardware, in no particular order.
    public var registeredSensorContainers: [SensorContainer] { registrations.values.map(\.container) }

    /// All registered sensors, in no particular order.
    public var registeredSensors: [Sensor] { registrations.values.map(\.container.sensor) }

    /// Returns whether the sensor is registered.
    public func isRegistered(sensorId: CoatyUUID) -> Bool { registrations[sensorId] != nil }

    /// Returns a registered sensor with its hardware.
    public func getSensorContainer(sensorId: CoatyUUID) -> SensorContainer? { registrations[sensorId]?.container }

    /// Returns a registered sensor.
    public func getSensor(sensorId: CoatyUUID) -> Sensor? { registrations[sensorId]?.container.sensor }

    /// Returns the hardware of a registered sensor.
    public func getSensorIo(sensorId: CoatyUUID) -> (any SensorIo)? { registrations[sensorId]?.container.io }

    /// Returns any registered sensor that satisfies the predicate.
    public func findSensor(predicate: (Sensor) throws -> Bool) rethrows -> Sensor? {
        try registeredSensors.first(where: predicate)
    }

    /// Returns the values that are read from a sensor for publishing. The stream ends when the sensor is unregistered.
    ///
    /// - Throws: ``SensorSourceError/notRegistered(_:)``
    public func getSensorValueObservable(sensorId: CoatyUUID) throws -> EventStream<AnyCodable> {
        guard let registration = registrations[sensorId] else { throw SensorSourceError.notRegistered(sensorId) }
        return registration.values.all(size: \.footprint)
    }

    /// Registers a sensor, and advertises it as soon as the agent is online. Does nothing if a sensor with its id is
    /// registered.
    ///
    /// - Parameters:
    ///   - sensor: the sensor.
    ///   - io: its hardware.
    ///   - observationPublicationType: the way in which observations are published automatically.
    ///   - samplingInterval: the interval, in milliseconds.
    /// - Throws: ``SensorSourceError/invalidSamplingInterval(_:)``; `EncodingError` or `PayloadError` if the sensor
    ///   can't be advertised.
    public func registerSensor(
        sensor: Sensor,
        io: any SensorIo,
        observationPublicationType: ObservationPublicationType = .none,
        samplingInterval: Int? = nil
    ) throws {
        guard !isRegistered(sensorId: sensor.objectId) else { return }
        var interval: Duration?
        if observationPublicationType != .none {
            guard let samplingInterval, samplingInterval > 0 else {
                throw SensorSourceError.invalidSamplingInterval(samplingInterval)
            }
            interval = .milliseconds(samplingInterval)
        }
        _ = try AdvertiseEvent.with(object: sensor)
        registrations[sensor.objectId] = Registration(
            container: SensorContainer(sensor: sensor, io: io),
            isChanneled: observationPublicationType == .channel,
            interval: interval
        )
        if communicationManager.isOnline { advertise(sensor) }
        if isStarted { startPublisher(of: sensor.objectId) }
    }

    /// Unregisters a sensor, and deadvertises it.
    ///
    /// - Throws: ``SensorSourceError/notRegistered(_:)``; `CommunicationError.queueFull(publications:bytes:)` if it
    ///   is unregistered but can't be deadvertised.
    public func unregisterSensor(sensorId: CoatyUUID) throws {
        guard let registration = registrations.removeValue(forKey: sensorId) else {
            throw SensorSourceError.notRegistered(sensorId)
        }
        registration.publisher?.cancel()
        registration.values.finish()
        // Other agents do not know the sensors of a stopped agent.
        guard isStarted, !isSet("skipSensorDeadvertise") else { return }
        try communicationManager.publishDeadvertise(DeadvertiseEvent.with(objectIds: sensorId))
    }

    // MARK: - Observations

    /// Creates the observation of a value that was just read: its name is `Observation of` and the sensor's name, and
    /// both times are the current time.
    open func createObservation(
        container: SensorContainer,
        value: AnyCodable,
        resultQuality: [String]? = nil,
        validTime: CoatyTimeInterval? = nil,
        parameters: [String: AnyCodable]? = nil,
        featureOfInterestId: CoatyUUID? = nil
    ) -> Observation {
        let now = CoatyTimestamp.nowMillis()
        return Observation(
            phenomenonTime: now,
            result: value,
            resultTime: now,
            resultQuality: resultQuality,
            validTime: validTime,
            parameters: parameters,
            featureOfInterest: featureOfInterestId,
            name: "Observation of \(container.sensor.name)",
            parentObjectId: container.sensor.objectId
        )
    }

    /// Returns the channel of a sensor: its object id.
    open func getChannelId(container: SensorContainer) -> String { container.sensor.objectId.string }

    /// Called before an observation is published.
    open func onObservationWillPublish(container: SensorContainer, observation: Observation) {}

    /// Called when an observation was published, or is queued for the connection.
    open func onObservationDidPublish(container: SensorContainer, observation: Observation) {}

    // MARK: - Answers

    private func answer(_ event: DiscoverEvent) {
        let asked = event.data
        let found = registeredSensors.filter { sensor in
            asked.isDiscoveringObjectId()
                ? sensor.objectId == asked.objectId
                : asked.isDiscoveringTypes() && asked.isObjectTypeCompatible(sensor.objectType)
        }
        for sensor in found {
            do {
                try event.resolve(ResolveEvent.with(object: sensor))
            } catch {
                log("a Discover event could not be answered", sensor.objectId, error)
            }
        }
    }

    private func answer(_ event: QueryEvent) {
        let asked = event.data
        do {
            let found = try ObjectMatcher.objects(
                registeredSensors.filter { asked.isObjectTypeCompatible($0.objectType) },
                matching: asked.objectFilter
            )
            if !found.isEmpty { try event.retrieve(RetrieveEvent.with(objects: found)) }
        } catch {
            container.logger.error("a Query event could not be answered", metadata: ["error": "\(error)"])
        }
    }

    private func advertise(_ sensor: Sensor) {
        guard !isSet("skipSensorAdvertise") else { return }
        do {
            try communicationManager.publishAdvertise(AdvertiseEvent.with(object: sensor))
        } catch {
            log("a sensor could not be advertised", sensor.objectId, error)
        }
    }

    private func isSet(_ option: String) -> Bool { options.extra[option] as? Bool ?? false }

    func log(_ message: String, _ sensorId: CoatyUUID, _ error: any Error) {
        container.logger.error("\(message)", metadata: ["sensor": "\(sensorId)", "error": "\(error)"])
    }
}
