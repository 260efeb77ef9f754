import Coaty
import CoatySensorThings
import TestSupport
import Testing

@ControllerActor
@Suite(.exclusive) struct ThingObserverControllerTests {
    private let broker = InMemoryBroker()
    private let thingId = CoatyUUID()
    private let sensorId = CoatyUUID()

    private typealias Follower = ThingSensorObservationObserverController

    /// Returns the names of the changed sensors, one text for each list.
    private func names(_ info: RegisteredSensorsChangeInfo) -> [String] {
        [info.added, info.removed, info.changed, info.total].map { $0.map(\.name).sorted().joined(separator: " ") }
    }

    /// Creates an agent with a thing, and an agent with its sensor.
    private func scene() async throws -> (
        things: (container: Container, controller: ThingSourceController),
        sensors: (container: Container, controller: SensorSourceController)
    ) {
        let things = try await agent(on: broker, ThingSourceController.self)
        let sensors = try await agent(on: broker, SensorSourceController.self)
        try things.controller.add(thingId)
        try sensors.controller.registerSensor(
            sensor: makeSensor("a", id: sensorId, of: thingId),
            io: MockSensorIo()
        )
        return (things, sensors)
    }

    @Test func findsThings() async throws {
        let (things, controller) = try await agent(on: broker, ThingSourceController.self)
        let (client, observer) = try await agent(on: broker, ThingObserverController.self)
        let locationId = CoatyUUID()
        let advertised = try observer.observeAdvertisedThings()
        try await untilSettled(client)
        try controller.add(thingId, locationId: locationId)
        let discovered = try observer.discoverThings()
        let queried = try observer.queryThingsAtLocation(locationId: locationId)
        let ids = try await withPatience {
            var ids: [CoatyUUID] = []
            for await thing in advertised {
                ids.append(thing.objectId)
                break
            }
            for await thing in discovered {
                ids.append(thing.objectId)
                break
            }
            for await things in queried {
                ids += things.map(\.objectId)
                break
            }
            return ids
        }
        #expect(ids == [thingId, thingId, thingId])
        let conditions: AnyCodable = ["locationId", [7, .string(locationId.string)]]
        #expect(
            broker.payloads(.query) == [
                ["objectTypes": ["coaty.sensorThings.Thing"], "objectFilter": ["conditions": conditions]]
            ]
        )
        await client.shutdown()
        await things.shutdown()
    }

    @Test func followsThingsSensorsAndObservations() async throws {
        let (things, sensors) = try await scene()
        let (client, follower) = try await agent(on: broker, Follower.self)
        let observations = follower.sensorObservation
        let changes = follower.registeredSensorsChangeInfo
        try await withPatience { [thingId] in
            for await info in changes where !info.total.isEmpty {
                #expect(names(info) == ["a", "", "", "a"])
                #expect(info.added.first.flatMap(info.thing(of:))?.objectId == thingId)
                return
            }
            throw TimedOut()
        }

        try await untilSettled(client)

        // The thing is already known. Its sensors are queried again, but its events are delivered only once.
        let queries = broker.payloads(.query).count
        try things.controller.communicationManager.publishAdvertise(
            AdvertiseEvent.with(object: try #require(things.controller.things.first))
        )
        let answers = broker.payloads(.retrieve).count
        try await until { [broker] in
            broker.payloads(.query).count > queries && broker.payloads(.retrieve).count > answers
        }
        try await sensors.controller.publishChanneledObservation(sensorId: sensorId, parameters: ["n": 1])
        try await sensors.controller.publishChanneledObservation(sensorId: sensorId, parameters: ["n": 2])
        let observed = try await withPatience {
            var observed: [AnyCodable?] = []
            for await observation in observations {
                #expect(observation.sensor.name == "a")
                observed.append(observation.obs.parameters?["n"])
                if observed.count == 2 { break }
            }
            return observed
        }
        #expect(observed == [1, 2])
        for container in [client, sensors.container, things.container] { await container.shutdown() }
    }

    @Test func sensorChangesAreReported() async throws {
        let (things, sensors) = try await scene()
        let (client, follower) = try await agent(on: broker, Follower.self)
        let changes = follower.registeredSensorsChangeInfo
        let otherId = CoatyUUID()
        let controller = sensors.controller
        try await withPatience { [thingId, sensorId] in
            var infos = changes.makeAsyncIterator()
            @ControllerActor func next(_ isWanted: (RegisteredSensorsChangeInfo) -> Bool) async throws -> [String] {
                while let info = await infos.next(isolation: ControllerActor.shared) {
                    if isWanted(info) { return names(info) }
                }
                throw TimedOut()
            }
            #expect(try await next { !$0.total.isEmpty } == ["a", "", "", "a"])

            try controller.registerSensor(sensor: makeSensor("b", id: otherId, of: thingId), io: MockSensorIo())
            try controller.registerSensor(sensor: makeSensor("other", of: CoatyUUID()), io: MockSensorIo())
            #expect(try await next { $0.total.count == 2 } == ["b", "", "", "a b"])

            try controller.unregisterSensor(sensorId: sensorId)
            #expect(try await next { !$0.removed.isEmpty } == ["", "a", "", "b"])

            let renamed = makeSensor("c", id: otherId, of: thingId)
            try controller.communicationManager.publishAdvertise(AdvertiseEvent.with(object: renamed))
            #expect(try await next { $0.total.first?.name == "c" } == ["", "", "c", "c"])

            try controller.communicationManager.publishDeadvertise(DeadvertiseEvent.with(objectIds: thingId))
            #expect(try await next { !$0.removed.isEmpty } == ["", "c", "", ""])
        }
        for container in [client, sensors.container, things.container] { await container.shutdown() }
    }

    @Test func thingsAreRemovedAndRestoredWithTheirAgent() async throws {
        let (things, sensors) = try await scene()
        let (client, follower) = try await agent(on: broker, Follower.self)
        let changes = follower.registeredSensorsChangeInfo
        let broker = broker
        try await withPatience { () async throws in
            var infos = changes.makeAsyncIterator()
            @ControllerActor func next(count: Int) async throws -> [String] {
                while let info = await infos.next(isolation: ControllerActor.shared) {
                    if info.total.count == count, info.added.count + info.removed.count > 0 { return names(info) }
                }
                throw TimedOut()
            }
            let comes = ["a", "", "", "a"]
            let goes = ["", "a", "", ""]
            #expect(try await next(count: 1) == comes)

            await things.container.communicationManager.restart()
            #expect(try await next(count: 0) == goes)
            #expect(try await next(count: 1) == comes)

            await client.communicationManager.stop()
            #expect(try await next(count: 0) == goes)
            client.communicationManager.start()
            #expect(try await next(count: 1) == comes)

            broker.setAvailable(false)
            #expect(try await next(count: 0) == goes)
            broker.setAvailable(true)
            #expect(try await next(count: 1) == comes)

            await client.shutdown()
            #expect(try await next(count: 0) == goes)
            if await infos.next(isolation: ControllerActor.shared) != nil { Issue.record("the sequence has not ended") }
        }
        for container in [sensors.container, things.container] { await container.shutdown() }
    }

    @Test func filtersThingsAndSensors() async throws {
        let (things, sensors) = try await scene()
        let otherId = CoatyUUID()
        try things.controller.add(otherId)
        try sensors.controller.registerSensor(sensor: makeSensor("b", of: thingId), io: MockSensorIo())
        try sensors.controller.registerSensor(sensor: makeSensor("c", of: otherId), io: MockSensorIo())
        let (client, follower) = try await agent(on: broker, Follower.self)
        await client.communicationManager.stop()
        let thingId = thingId
        follower.thingFilter = { $0.objectId == thingId }
        follower.sensorFilter = { sensor, thing in sensor.name != "a" && sensor.parentObjectId == thing.objectId }
        let changes = follower.registeredSensorsChangeInfo
        let queries = broker.payloads(.query).count
        client.communicationManager.start()
        try await withPatience {
            for await info in changes where !info.total.isEmpty {
                #expect(names(info) == ["b", "", "", "b"])
                return
            }
        }
        #expect(broker.payloads(.query).count == queries + 1)
        for container in [client, sensors.container, things.container] { await container.shutdown() }
    }
}
