public import Coaty

/// Stands for sensors: advertises them, answers who looks for them, and publishes what they observe.
///
/// Sensors are registered by ``registerSensor(sensor:io:observationPublicationType:samplingInterval:)``, or from the option
/// `sensors`: an array of ``SensorDefinition``. Further options, all of them false unless set:
///
/// - `ignoreSensorDiscoverEvents`: Discover events are not answered.
/// - `ignoreSensorQueryEvents`: Query events are not answered.
/// - `skipSensorAdvertise`: sensors are not advertised.
/// - `skipSensorDeadvertise`: sensors that are unregistered are not deadvertised.
open class SensorSourceController: Controller {
    struct Registration {
        let container: SensorContainer
        let isChanneled: Bool
        /// How often observations are published by themselves.
        let interval: Duration?
        let values = Readers<AnyCodable>()
        var publisher: Task<Void, Never>?
    }

    var registrations: [CoatyUUID: Registration] = [:]
    private var isStarted = false

    // MARK: - Life

    /// Registers the sensors of the options. What is wrong with one of these is logged.
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

    /// Advertises the sensors in each online period, because observers forget them between periods; answers; reads at intervals.
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

    /// Ends what has begun with the start. Sensors stay registered.
    open override func onCommunicationManagerStopping() {
        super.onCommunicationManagerStopping()
        isStarted = false
    }

    // MARK: - Sensors

    /// All registered sensors and their hardware, in no certain order.
    public var registeredSensorContainers: [SensorContainer] { registrations.values.map(\.container) }

    /// All registered sensors, in no certain order.
    public var registeredSensors: [Sensor] { registrations.values.map(\.container.sensor) }

    /// Whether the sensor is registered.
    public func isRegistered(sensorId: CoatyUUID) -> Bool { registrations[sensorId] != nil }

    /// A registered sensor and its hardware.
    public func getSensorContainer(sensorId: CoatyUUID) -> SensorContainer? { registrations[sensorId]?.container }

    /// A registered sensor.
    public func getSensor(sensorId: CoatyUUID) -> Sensor? { registrations[sensorId]?.container.sensor }

    /// The hardware of a registered sensor.
    public func getSensorIo(sensorId: CoatyUUID) -> (any SensorIo)? { registrations[sensorId]?.container.io }

    /// Some registered sensor for which the predicate holds.
    public func findSensor(predicate: (Sensor) throws -> Bool) rethrows -> Sensor? {
        try registeredSensors.first(where: predicate)
    }

    /// What is read from a sensor to be published. It ends when the sensor is unregistered.
    ///
    /// It keeps ``CommunicationManager/streamBuffer`` values for a reader that is behind.
    ///
    /// - Throws: ``SensorSourceError/notRegistered(_:)``
    public func getSensorValueObservable(sensorId: CoatyUUID) throws -> AsyncStream<AnyCodable> {
        guard let registration = registrations[sensorId] else { throw SensorSourceError.notRegistered(sensorId) }
        return registration.values.stream(keeping: CommunicationManager.streamBuffer)
    }

    /// Registers a sensor, and advertises it as soon as the agent is online. Does nothing where one of its id is registered.
    ///
    /// - Parameters:
    ///   - sensor: the sensor.
    ///   - io: its hardware.
    ///   - observationPublicationType: whether observations are published by themselves, and how.
    ///   - samplingInterval: how often, in milliseconds.
    /// - Throws: ``SensorSourceError/invalidSamplingInterval(_:)``; `EncodingError` or ``PayloadError`` where the sensor can't
    ///   be advertised.
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
    /// - Throws: ``SensorSourceError/notRegistered(_:)``; ``CommunicationError/queueFull(publications:bytes:)`` where it is
    ///   unregistered, but nobody is told.
    public func unregisterSensor(sensorId: CoatyUUID) throws {
        guard let registration = registrations.removeValue(forKey: sensorId) else {
            throw SensorSourceError.notRegistered(sensorId)
        }
        registration.publisher?.cancel()
        registration.values.finish()
        // Of an agent that is stopped others know nothing.
        guard isStarted, !isSet("skipSensorDeadvertise") else { return }
        try communicationManager.publishDeadvertise(DeadvertiseEvent.with(objectIds: sensorId))
    }

    // MARK: - Observations

    /// Makes the observation of a value that was just read: `Observation of` and the sensor's name, with both times now.
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

    /// The channel of a sensor: its object id.
    open func getChannelId(container: SensorContainer) -> String { container.sensor.objectId.string }

    /// Called before an observation is published.
    open func onObservationWillPublish(container: SensorContainer, observation: Observation) {}

    /// Called when an observation was published, or waits for the link.
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
