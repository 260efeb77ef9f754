import Coaty
import CoatySensorThings
import TestSupport
import Testing

@ControllerActor
@Suite(.exclusive) struct SensorSourceControllerTests {
    private let broker = InMemoryBroker()
    private let thingId = CoatyUUID()
    private let sensorId = CoatyUUID()

    @Test func discoversAndQueriesSensorsOfTheOptions() async throws {
        let otherId = CoatyUUID()
        let (source, _) = try await agent(
            on: broker,
            SensorSourceController.self,
            extra: [
                "sensors": [
                    SensorDefinition(
                        sensor: makeSensor("a", id: sensorId, of: thingId),
                        io: MockSensorIo.self,
                        observationPublicationType: .none
                    ),
                    SensorDefinition(
                        sensor: makeSensor("b", id: otherId),
                        io: MockSensorIo.self,
                        observationPublicationType: .none
                    ),
                ]
            ]
        )
        let (client, observer) = try await agent(on: broker, SensorObserverController.self)
        let discovered = try observer.discoverSensors()
        let found = try await withPatience {
            var names: Set<String> = []
            for await sensor in discovered {
                names.insert(sensor.name)
                if names.count == 2 { break }
            }
            return names
        }
        #expect(found == ["a", "b"])

        let ofThing = try observer.querySensorsOfThing(thingId: thingId)
        let queried = try await withPatience {
            for await sensors in ofThing { return sensors.map(\.name) }
            throw TimedOut()
        }
        #expect(queried == ["a"])
        #expect(
            broker.payloads(.query) == [
                [
                    "objectTypes": ["coaty.sensorThings.Sensor"],
                    "objectFilter": ["conditions": ["parentObjectId", [7, .string(thingId.string)]]],
                ]
            ]
        )

        let byId = try client.communicationManager.publishDiscover(DiscoverEvent.with(objectId: otherId))
        let name = try await withPatience {
            for await event in byId { return try event.data.object?.name }
            throw TimedOut()
        }
        #expect(name == "b")
        await client.shutdown()
        await source.shutdown()
    }

    @Test func queriesThatMatchNothingGetNoAnswer() async throws {
        let (source, controller) = try await agent(on: broker, SensorSourceController.self)
        try controller.registerSensor(sensor: makeSensor("a", of: thingId), io: MockSensorIo())
        let (client, observer) = try await agent(on: broker, SensorObserverController.self)
        let ofOther = try observer.querySensorsOfThing(thingId: CoatyUUID())
        let ofThing = try observer.querySensorsOfThing(thingId: thingId)
        // Queries are answered in order, so after the second response there is none for the first query.
        _ = try await withPatience { for await _ in ofThing { return } }
        #expect(broker.payloads(.retrieve).count == 1)
        withExtendedLifetime(ofOther) {}
        await client.shutdown()
        await source.shutdown()
    }

    @Test func publishesObservations() async throws {
        let (source, controller) = try await agent(on: broker, SensorSourceController.self)
        let (client, observer) = try await agent(on: broker, SensorObserverController.self)
        let io = MockSensorIo()
        try controller.registerSensor(sensor: makeSensor("a", id: sensorId), io: io)
        let channeled = try observer.observeChanneledObservations(sensorId: sensorId)
        let advertised = try observer.observeAdvertisedObservations(sensorId: sensorId)
        let values = try controller.getSensorValueObservable(sensorId: sensorId)
        try await untilSettled(client)
        io.write(value: 21.5)
        let featureId = CoatyUUID()
        try await controller.publishChanneledObservation(
            sensorId: sensorId,
            resultQuality: ["good"],
            validTime: CoatyTimeInterval(duration: 1000),
            parameters: ["depth": 3],
            featureOfInterestId: featureId
        )
        io.write(value: "off")
        try await controller.publishAdvertisedObservation(sensorId: sensorId)

        try await withPatience { [sensorId] in
            for await observation in channeled {
                #expect(observation.result == 21.5)
                #expect(observation.name == "Observation of a")
                #expect(observation.parentObjectId == sensorId)
                #expect(observation.resultQuality == ["good"])
                #expect(observation.validTime == CoatyTimeInterval(duration: 1000))
                #expect(observation.parameters == ["depth": 3])
                #expect(observation.featureOfInterest == featureId)
                #expect(observation.resultTime == observation.phenomenonTime)
                return
            }
            throw TimedOut()
        }
        let result = try await withPatience {
            for await observation in advertised { return observation.result }
            throw TimedOut()
        }
        #expect(result == "off")
        try controller.unregisterSensor(sensorId: sensorId)
        let read = try await withPatience {
            var read: [AnyCodable] = []
            for await value in values { read.append(value) }
            return read
        }
        #expect(read == [21.5, "off"])
        await client.shutdown()
        await source.shutdown()
    }

    @Test(arguments: [ObservationPublicationType.channel, .advertise])
    func publishesAtIntervals(how: ObservationPublicationType) async throws {
        let (source, controller) = try await agent(on: broker, SensorSourceController.self)
        try controller.registerSensor(
            sensor: makeSensor("a", id: sensorId),
            io: MockSensorIo(),
            observationPublicationType: how,
            samplingInterval: 1
        )
        // So long that at most its first value is published.
        let slowId = CoatyUUID()
        try controller.registerSensor(
            sensor: makeSensor("slow", id: slowId),
            io: MockSensorIo(),
            observationPublicationType: .channel,
            samplingInterval: 3_600_000
        )
        let (eventType, name): (CommunicationEventType, String) =
            how == .channel ? (.channel, sensorId.string) : (.advertise, "coaty.sensorThings.Observation")
        try await until { [broker] in broker.payloads(eventType, named: name).count >= 3 }

        await source.communicationManager.restart()
        let before = broker.payloads(eventType, named: name).count
        try await until { [broker] in broker.payloads(eventType, named: name).count >= before + 3 }
        #expect(broker.payloads(.channel, named: slowId.string).count <= 2, "at most one in each run")
        await source.shutdown()
    }

    @Test func answersAgainAfterTheLastSensorWasUnregistered() async throws {
        let (source, controller) = try await agent(on: broker, SensorSourceController.self)
        let (client, observer) = try await agent(on: broker, SensorObserverController.self)
        try controller.registerSensor(sensor: makeSensor("a", id: sensorId), io: MockSensorIo())
        try controller.registerSensor(sensor: makeSensor("ignored", id: sensorId), io: MockSensorIo())
        #expect(controller.getSensor(sensorId: sensorId)?.name == "a")
        try controller.unregisterSensor(sensorId: sensorId)
        #expect(!controller.isRegistered(sensorId: sensorId))
        try await until { [broker, sensorId] in
            broker.payloads(.deadvertise) == [["objectIds": [.string(sensorId.string)]]]
        }
        try controller.registerSensor(sensor: makeSensor("b", id: sensorId, of: thingId), io: MockSensorIo())
        let ofThing = try observer.querySensorsOfThing(thingId: thingId)
        let discovered = try observer.discoverSensors()
        let names = try await withPatience {
            var names: [String] = []
            for await sensor in discovered {
                names.append(sensor.name)
                break
            }
            for await sensors in ofThing {
                names += sensors.map(\.name)
                break
            }
            return names
        }
        #expect(names == ["b", "b"])
        await client.shutdown()
        await source.shutdown()
    }

    @Test func refusesUnregisteredSensors() async throws {
        let (source, controller) = try await agent(on: broker, SensorSourceController.self)
        let refusal = SensorSourceError.notRegistered(sensorId)
        #expect(throws: refusal) { try controller.unregisterSensor(sensorId: sensorId) }
        #expect(throws: refusal) { try controller.getSensorValueObservable(sensorId: sensorId) }
        await #expect(throws: refusal) { try await controller.publishChanneledObservation(sensorId: sensorId) }
        #expect(throws: SensorSourceError.invalidSamplingInterval(0)) {
            try controller.registerSensor(
                sensor: makeSensor("a", id: sensorId),
                io: MockSensorIo(),
                observationPublicationType: .channel,
                samplingInterval: 0
            )
        }
        #expect(controller.registeredSensors.isEmpty)
        await source.shutdown()
    }

    @Test func failedReadPublishesNothing() async throws {
        struct Broken: Error, SensorIo {
            init(parameters: AnyCodable? = nil) {}
            func read() async throws -> AnyCodable { throw self }
            func write(value: AnyCodable) async throws { throw self }
        }
        let (source, controller) = try await agent(on: broker, SensorSourceController.self)
        try controller.registerSensor(sensor: makeSensor("a", id: sensorId), io: Broken())
        await #expect(throws: Broken.self) { try await controller.publishChanneledObservation(sensorId: sensorId) }
        await source.shutdown()
        #expect(broker.payloads(.channel).isEmpty)
    }

    @Test func publishesNothingOfASensorThatIsUnregisteredWhileItIsRead() async throws {
        struct Slow: SensorIo {
            let reading = AsyncStream.makeStream(of: Void.self)
            let release = AsyncStream.makeStream(of: Void.self)
            init(parameters: AnyCodable? = nil) {}
            func read() async -> AnyCodable {
                reading.continuation.finish()
                for await _ in release.stream {}
                return 1
            }
            func write(value: AnyCodable) {}
        }
        let (source, controller) = try await agent(on: broker, SensorSourceController.self)
        let io = Slow()
        try controller.registerSensor(sensor: makeSensor("a", id: sensorId), io: io)
        let publishing = Task { try await controller.publishChanneledObservation(sensorId: sensorId) }
        try await withPatience { for await _ in io.reading.stream {} }
        try controller.unregisterSensor(sensorId: sensorId)
        io.release.continuation.finish()
        await #expect(throws: SensorSourceError.notRegistered(sensorId)) { try await publishing.value }
        await source.shutdown()
        #expect(broker.payloads(.channel).isEmpty)
    }

    @Test func advertisesOnEachConnect() async throws {
        let (source, controller) = try await agent(on: broker, SensorSourceController.self)
        try controller.registerSensor(sensor: makeSensor("a"), io: MockSensorIo())
        let name = "coaty.sensorThings.Sensor"
        try await until { [broker] in broker.payloads(.advertise, named: name).count == 1 }
        let manager = source.communicationManager
        broker.setAvailable(false)
        try await until { !manager.isOnline }
        broker.setAvailable(true)
        try await until { [broker] in broker.payloads(.advertise, named: name).count == 2 }
        await manager.restart()
        try await until { [broker] in broker.payloads(.advertise, named: name).count == 3 }
        await source.shutdown()
    }

    @Test func optionsDisableEventsAndAnswers() async throws {
        let (source, controller) = try await agent(
            on: broker,
            SensorSourceController.self,
            extra: [
                "skipSensorAdvertise": true, "skipSensorDeadvertise": true, "ignoreSensorDiscoverEvents": true,
                "ignoreSensorQueryEvents": true,
            ]
        )
        let (loud, other) = try await agent(on: broker, SensorSourceController.self)
        try controller.registerSensor(sensor: makeSensor("quiet", id: sensorId, of: thingId), io: MockSensorIo())
        try other.registerSensor(sensor: makeSensor("loud", of: thingId), io: MockSensorIo())
        let (client, observer) = try await agent(on: broker, SensorObserverController.self)
        let discovered = try observer.discoverSensors()
        let queried = try observer.querySensorsOfThing(thingId: thingId)
        try await withPatience {
            for await _ in discovered { break }
            for await _ in queried { break }
        }
        try controller.unregisterSensor(sensorId: sensorId)
        for container in [client, loud, source] { await container.shutdown() }
        #expect(broker.payloads(.advertise, named: "coaty.sensorThings.Sensor").count == 1)
        #expect(broker.payloads(.resolve).count == 1)
        #expect(broker.payloads(.retrieve).count == 1)
        #expect(!broker.payloads(.deadvertise).contains(["objectIds": [.string(sensorId.string)]]))
    }
}
