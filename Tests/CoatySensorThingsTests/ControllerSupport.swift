import Coaty
import CoatySensorThings
import Testing

/// Maximum time that a test waits for an event.
let patience = Duration.seconds(20)

struct TimedOut: Error {}

/// Waits for a result, but no longer than ``patience``.
func withPatience<Result: Sendable>(
    _ body: @escaping @ControllerActor () async throws -> Result
) async throws -> Result {
    try await withThrowingTaskGroup(of: Result.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try await Task.sleep(for: patience)
            throw TimedOut()
        }
        defer { group.cancelAll() }
        guard let first = try await group.next() else { throw TimedOut() }
        return first
    }
}

/// Waits until a condition holds.
func until(_ condition: @escaping @ControllerActor () -> Bool) async throws {
    try await withPatience {
        while !condition() { try await Task.sleep(for: .milliseconds(1)) }
    }
}

extension InMemoryBroker {
    /// Returns the payloads of all published events of a pattern, optionally only those with a name.
    func payloads(_ eventType: CommunicationEventType, named name: String? = nil) -> [AnyCodable] {
        published.compactMap { publication in
            guard case .event(let address) = publication.destination, address.eventType == eventType,
                name == nil || address.name?.text == name
            else { return nil }
            return try? AnyCodable(Payload(publication.payload).json)
        }
    }
}

/// Waits until all subscriptions so far are active for events published from now on.
func untilSettled(_ container: Container) async throws {
    let manager = container.communicationManager
    try await until { manager.queued.operations == 0 }
}

/// Creates an agent with one controller, named `it`.
@ControllerActor
func agent<C: Controller>(
    on broker: InMemoryBroker,
    _ controllerType: C.Type,
    extra: sending [String: Any] = [:]
) async throws -> (container: Container, controller: C) {
    let container = try Container.resolve(
        components: Components(controllers: ["it": controllerType]),
        configuration: Configuration(
            communication: CommunicationOptions(shouldAutoStart: true) { _ in InMemoryBinding(broker: broker) },
            controllers: ControllerConfig(controllerOptions: ["it": ControllerOptions(extra: extra)])
        )
    )
    let manager = container.communicationManager
    try await until { manager.isOnline }
    try await untilSettled(container)
    return (container, try #require(container.getController(name: "it")))
}

func makeSensor(_ name: String, id: CoatyUUID = .init(), of thingId: CoatyUUID? = nil) -> Sensor {
    Sensor(
        description: "",
        encodingType: SensorEncodingTypes.UNDEFINED,
        metadata: [:],
        unitOfMeasurement: UnitOfMeasurement(name: "Celsius", symbol: "degC", definition: "http://example.org/degC"),
        observationType: ObservationTypes.MEASUREMENT,
        observedProperty: ObservedProperty(name: "Temperature", definition: "http://example.org/t", description: ""),
        name: name,
        objectId: id,
        parentObjectId: thingId
    )
}

/// The things of an agent. They are advertised on each connect, and found by Discover events for things and Query
/// events for the things of a Location.
final class ThingSourceController: Controller {
    private(set) var things: [Thing] = []

    func add(_ id: CoatyUUID, locationId: CoatyUUID? = nil) throws {
        let thing = Thing(
            description: "",
            name: "Thing",
            objectId: id,
            parentObjectId: container.identity.objectId,
            locationId: locationId
        )
        things.append(thing)
        guard communicationManager.isOnline else { return }
        try communicationManager.publishAdvertise(AdvertiseEvent.with(object: thing))
    }

    override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        let discovers = communicationManager.observeDiscover()
        Task {
            for await event in discovers where event.data.isObjectTypeCompatible(Thing.objectType) {
                for thing in things { _ = try? event.resolve(ResolveEvent.with(object: thing)) }
            }
        }
        .disposed(by: disposeBag)
        let states = communicationManager.getCommunicationState()
        Task {
            for await state in states where state == .online {
                for thing in things {
                    _ = try? communicationManager.publishAdvertise(AdvertiseEvent.with(object: thing))
                }
            }
        }
        .disposed(by: disposeBag)
        let queries = communicationManager.observeQuery()
        Task {
            for await event in queries where event.data.isObjectTypeCompatible(Thing.objectType) {
                _ = try? event.retrieve(RetrieveEvent.with(objects: things))
            }
        }
        .disposed(by: disposeBag)
    }
}
