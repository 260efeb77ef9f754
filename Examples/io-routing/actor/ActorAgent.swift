import Coaty
import ExampleSupport
import IORoutingModel

/// An agent that prints the temperatures it receives: `actor normal|emergency [updateRate]`. The arguments are the
/// operating state in which it is associated, and the desired update rate in milliseconds, 5000 by default.
@main
struct ActorAgent {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        let container = try await start(
            isForEmergency: arguments.first == "emergency",
            updateRate: arguments.dropFirst().first.flatMap { Int($0) } ?? TemperatureMeasurement.updateRate
        )
        await Agent.untilTerminated()
        await container.shutdown()
    }

    @ControllerActor
    private static func start(isForEmergency: Bool, updateRate: Int) throws -> Container {
        let actor = IoActor(
            valueType: TemperatureMeasurement.valueType,
            updateRate: updateRate,
            name: isForEmergency ? "Temperature Actor 2" : "Temperature Actor 1",
            objectId: isForEmergency
                ? CoatyUUID(uuidString: "a60a74f3-3d26-446f-a358-911867544944") ?? .init()
                : CoatyUUID(uuidString: "a731fc40-c0f8-486f-b5b6-b653c3cabaea") ?? .init()
        )
        let node = IoNodeDefinition(
            ioActors: [actor],
            // The router's rule uses this characteristic.
            characteristics: ["isResponsibleForOperatingState": isForEmergency ? "emergency" : "normal"]
        )
        return try Container.resolve(
            components: Components(controllers: [
                "IoActorController": IoActorController.self,
                "DisplayController": DisplayController.self,
            ]),
            configuration: .build { config in
                config.common = CommonOptions(
                    ioContextNodes: [TemperatureMeasurement.ioContextName: node],
                    agentIdentity: ["name": isForEmergency ? "EmergencyStateActorAgent" : "NormalStateActorAgent"]
                )
                config.communication = try Agent.communicationOptions(namespace: TemperatureMeasurement.namespace)
                config.controllers = ControllerConfig(controllerOptions: [
                    "DisplayController": ControllerOptions(extra: ["actor": actor])
                ])
            }
        )
    }
}

private final class DisplayController: Controller {
    override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        guard let controller: IoActorController = container.getController(name: "IoActorController"),
            let actor = options.extra["actor"] as? IoActor
        else { return }
        Task {
            for await isAssociated in controller.observeAssociation(actor: actor) {
                Agent.say(isAssociated ? "associated" : "not associated")
            }
        }
        .disposed(by: disposeBag)
        Task {
            // The first value is nil, or the latest one if the agent was stopped and started again.
            for await value in controller.observeIoValue(actor: actor) {
                if let value { Agent.say("\(value.value) °C") }
            }
        }
        .disposed(by: disposeBag)
    }
}
