import Coaty
import ExampleSupport
import IORoutingModel

/// An agent with three sources of temperatures, one for each strategy: `sources [updateRate]`, in milliseconds, 5000 by
/// default.
@main
struct SourcesAgent {
    static func main() async throws {
        let updateRate = CommandLine.arguments.dropFirst().first.flatMap { Int($0) }
        let container = try await start(updateRate: updateRate ?? TemperatureMeasurement.updateRate)
        await Agent.untilTerminated()
        await container.shutdown()
    }

    @ControllerActor
    private static func start(updateRate: Int) throws -> Container {
        let sources = [
            // Publishes each value.
            IoSource(
                valueType: TemperatureMeasurement.valueType,
                updateStrategy: .None,
                name: "Temperature Source 1",
                objectId: CoatyUUID(uuidString: "c547e5cd-ef99-4ccd-b109-fc472fc2d421") ?? .init()
            ),
            // Publishes the latest value of each interval.
            IoSource(
                valueType: TemperatureMeasurement.valueType,
                updateStrategy: .Sample,
                updateRate: updateRate,
                name: "Temperature Source 2",
                objectId: CoatyUUID(uuidString: "2e9949f7-a8ef-435b-88a9-527c0a9414c3") ?? .init()
            ),
            // Publishes a value when no other one has followed for an interval.
            IoSource(
                valueType: TemperatureMeasurement.valueType,
                updateStrategy: .Throttle,
                updateRate: updateRate,
                name: "Temperature Source 3",
                objectId: CoatyUUID(uuidString: "200cc37b-df20-4425-a16f-5c0b42d04dbb") ?? .init()
            ),
        ]
        return try Container.resolve(
            components: Components(controllers: [
                "IoSourceController": IoSourceController.self,
                "MeasuringController": MeasuringController.self,
            ]),
            configuration: .build { config in
                config.common = CommonOptions(
                    ioContextNodes: [TemperatureMeasurement.ioContextName: IoNodeDefinition(ioSources: sources)],
                    agentIdentity: ["name": "SourcesAgent"]
                )
                config.communication = try Agent.communicationOptions(namespace: TemperatureMeasurement.namespace)
                config.controllers = ControllerConfig(controllerOptions: [
                    "MeasuringController": ControllerOptions(extra: ["sources": sources, "updateRate": updateRate])
                ])
            }
        )
    }
}
