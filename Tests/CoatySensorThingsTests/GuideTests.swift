import Coaty
import CoatySensorThings
import TestSupport
import Testing

/// The examples of the chapter "Sources and observers".
@Suite(.exclusive, .timeLimit(.minutes(1))) struct GuideTests {
    @Test @ControllerActor func publishesAndObservesASensor() async throws {
        let sensor = Sensor(
            description: "Water temperature at the inlet",
            encodingType: SensorEncodingTypes.UNDEFINED,
            metadata: [:],
            unitOfMeasurement: UnitOfMeasurement(
                name: "Degree Celsius",
                symbol: "degC",
                definition: "http://www.qudt.org/qudt/owl/1.0.0/unit/Instances.html#DegreeCelsius"
            ),
            observationType: ObservationTypes.MEASUREMENT,
            observedProperty: ObservedProperty(
                name: "Temperature",
                definition: "http://www.qudt.org/qudt/owl/1.0.0/quantity/Instances.html#Temperature",
                description: "The temperature of the water"
            ),
            name: "Inlet"
        )
        let definition = SensorDefinition(
            sensor: sensor,
            io: Thermometer.self,
            samplingInterval: 10,
            observationPublicationType: .channel
        )
        let broker = InMemoryBroker()
        let source = try await agent(on: broker, SensorSourceController.self, extra: ["sensors": [definition]])
        let watching = try await agent(on: broker, SensorObserverController.self)
        let observer = watching.controller

        var names: [String] = []
        for await sensor in try observer.discoverSensors(timeLimit: .seconds(10)) {
            names.append(sensor.name)
            break
        }
        #expect(names == ["Inlet"])
        for await observation in try observer.observeChanneledObservations(sensorId: sensor.objectId) {
            #expect(observation.result == 20.5)
            break
        }
        try await source.controller.publishChanneledObservation(sensorId: sensor.objectId)
        await source.container.shutdown()
        await watching.container.shutdown()
    }
}

private struct Thermometer: SensorIo {
    init(parameters: AnyCodable?) {}
    func read() async throws -> AnyCodable { 20.5 }
    func write(value: AnyCodable) async throws {}
}
