import Coaty
import ExampleSupport
import RemoteOperationsModel

/// An agent that switches the lights of a floor, and prints their responses: `control on|off [floor [red green blue]]`.
@main
struct Control {
    static let answerTime = Duration.seconds(2)

    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        let on = arguments.first != "off"
        let floor = arguments.dropFirst().first.flatMap { Int($0) } ?? 1
        let color = arguments.dropFirst(2).compactMap { Int($0) }
        let container = try await start()
        let call = try switchLights(on: on, floor: floor, color: color.isEmpty ? [255, 140, 0] : color)
        for await answer in try container.communicationManager.publishCall(call, timeLimit: answerTime) {
            if let error = answer.data.error {
                Agent.say("error \(error.code): \(error.message)")
            } else if let result = answer.data.result {
                Agent.say("result: \(try PayloadCoder.encode(result))")
            }
        }
        await container.shutdown()
    }

    @ControllerActor
    private static func start() throws -> Container {
        try Container.resolve(
            components: Components(controllers: [:]),
            configuration: .build { config in
                config.common = CommonOptions(agentIdentity: ["name": "LightControlAgent"])
                config.communication = try Agent.communicationOptions(namespace: "com.remoteops")
            }
        )
    }

    /// Returns a call for the lights of a floor.
    private static func switchLights(on: Bool, floor: Int, color: [Int]) throws -> CallEvent {
        try CallEvent.with(
            operation: LightControl.operation,
            parameters: [
                "on": .init(on),
                "color": .init(color.map { AnyCodable($0) } + [1]),
                "switchTime": 10,
            ],
            filter: ContextFilter(
                conditions: ObjectFilterCondition(property: "floor", expression: .equals(.init(floor)))
            )
        )
    }
}
