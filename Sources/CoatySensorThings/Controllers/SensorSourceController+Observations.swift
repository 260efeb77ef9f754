public import Coaty

extension SensorSourceController {
    /// Reads a sensor, and delivers the observation through its channel.
    ///
    /// - Throws: ``SensorSourceError/notRegistered(_:)``, even if the sensor was unregistered while it was read; the
    ///   errors of ``SensorIo/read()``; the errors of publishing.
    public func publishChanneledObservation(
        sensorId: CoatyUUID,
        resultQuality: [String]? = nil,
        validTime: CoatyTimeInterval? = nil,
        parameters: [String: AnyCodable]? = nil,
        featureOfInterestId: CoatyUUID? = nil
    ) async throws {
        try await publishObservation(sensorId, true, resultQuality, validTime, parameters, featureOfInterestId)
    }

    /// Reads a sensor, and advertises the observation. Throws the errors of
    /// ``publishChanneledObservation(sensorId:resultQuality:validTime:parameters:featureOfInterestId:)``.
    public func publishAdvertisedObservation(
        sensorId: CoatyUUID,
        resultQuality: [String]? = nil,
        validTime: CoatyTimeInterval? = nil,
        parameters: [String: AnyCodable]? = nil,
        featureOfInterestId: CoatyUUID? = nil
    ) async throws {
        try await publishObservation(sensorId, false, resultQuality, validTime, parameters, featureOfInterestId)
    }

    private func publishObservation(
        _ sensorId: CoatyUUID,
        _ isChanneled: Bool,
        _ resultQuality: [String]? = nil,
        _ validTime: CoatyTimeInterval? = nil,
        _ parameters: [String: AnyCodable]? = nil,
        _ featureOfInterestId: CoatyUUID? = nil
    ) async throws {
        let (container, value) = try await read(sensorId)
        let observation = createObservation(
            container: container,
            value: value,
            resultQuality: resultQuality,
            validTime: validTime,
            parameters: parameters,
            featureOfInterestId: featureOfInterestId
        )
        try publish(observation, of: container, isChanneled: isChanneled)
    }

    private func read(_ sensorId: CoatyUUID) async throws -> (SensorContainer, AnyCodable) {
        guard let container = getSensorContainer(sensorId: sensorId) else {
            throw SensorSourceError.notRegistered(sensorId)
        }
        let value = try await container.io.read()
        try Task.checkCancellation()
        guard let registration = registrations[sensorId], registration.container.sensor === container.sensor else {
            throw SensorSourceError.notRegistered(sensorId)
        }
        registration.values.yield(value)
        return (container, value)
    }

    private func publish(_ observation: Observation, of container: SensorContainer, isChanneled: Bool) throws {
        onObservationWillPublish(container: container, observation: observation)
        if isChanneled {
            let channelId = getChannelId(container: container)
            try communicationManager.publishChannel(ChannelEvent.with(object: observation, channelId: channelId))
        } else {
            try communicationManager.publishAdvertise(AdvertiseEvent.with(object: observation))
        }
        onObservationDidPublish(container: container, observation: observation)
    }

    /// Publishes at the sensor's interval. A reading that takes longer delays the next one.
    func startPublisher(of sensorId: CoatyUUID) {
        guard let registration = registrations[sensorId], let interval = registration.interval else { return }
        let publisher = Task {
            var next = ContinuousClock.now
            var isFailing = false
            while true {
                next = max(next.advanced(by: interval), .now)
                do {
                    try await Task.sleep(until: next, clock: .continuous)
                    try await publishObservation(sensorId, registration.isChanneled)
                    isFailing = false
                } catch {
                    guard !Task.isCancelled else { return }
                    // Logged only once until it works again.
                    if !isFailing { log("no observation could be published", sensorId, error) }
                    isFailing = true
                }
            }
        }
        publisher.disposed(by: disposeBag)
        registrations[sensorId]?.publisher = publisher
    }
}
