import Coaty
import ExampleSupport
import RemoteOperationsModel

/// A light that can be switched remotely: `light [building [floor [room]]]`, each 1 by default. An additional argument
/// `defect` makes it fail.
@main
struct Light {
    static func main() async throws {
        let place = CommandLine.arguments.dropFirst().prefix(3).compactMap { Int($0) } + [1, 1, 1]
        let isDefect = CommandLine.arguments.last == "defect"
        let container = try await start(at: place, isDefect: isDefect)
        await Agent.untilTerminated()
        await container.shutdown()
    }

    @ControllerActor
    private static func start(at place: [Int], isDefect: Bool) throws -> Container {
        try Container.resolve(
            components: Components(
                controllers: ["LightController": LightController.self],
                objectTypes: [LightContext.self]
            ),
            configuration: .build { config in
                config.common = CommonOptions(agentIdentity: ["name": "LightAgent"])
                config.communication = try Agent.communicationOptions(namespace: "com.remoteops")
                config.controllers = ControllerConfig(
                    controllerOptions: [
                        "LightController": ControllerOptions(
                            extra: ["building": place[0], "floor": place[1], "room": place[2], "isDefect": isDefect]
                        )
                    ]
                )
            }
        )
    }
}

private final class LightController: Controller {
    static let maximumSwitchTime = 60_000.0
    private static let defect = ReturnError(code: 1, message: "Light is defect")

    private let lightId = CoatyUUID()
    private var isOn = false

    override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        Task {
            let context = LightContext(
                lightId: lightId,
                building: options.extra["building"] as? Int ?? 1,
                floor: options.extra["floor"] as? Int ?? 1,
                room: options.extra["room"] as? Int ?? 1
            )
            let calls = try communicationManager.observeCall(operation: LightControl.operation, context: context)
            Agent.say("light on floor \(context.floor), room \(context.room)")
            for await call in calls {
                do {
                    try await call.returnEvent(execute(call.data))
                } catch {
                    Agent.say("not answered: \(error)")
                }
            }
        }
        .disposed(by: disposeBag)
    }

    private func execute(_ data: CallEventData) async throws -> ReturnEvent {
        guard let on = data.getParameterByName(name: "on")?.value as? Bool,
            let color = numbers(data.getParameterByName(name: "color")), LightControl.isValid(color: color),
            let switchTime = number(data.getParameterByName(name: "switchTime") ?? 0),
            0...Self.maximumSwitchTime ~= switchTime
        else { return try .with(error: ReturnError(code: .invalidParameters), executionInfo: executionInfo()) }
        try await Task.sleep(for: .milliseconds(switchTime))
        guard options.extra["isDefect"] as? Bool != true else {
            return try .with(error: Self.defect, executionInfo: executionInfo())
        }
        isOn = on
        Agent.say(isOn ? "on, color \(color)" : "off")
        return try .with(result: .init(isOn), executionInfo: executionInfo())
    }

    private func executionInfo() -> AnyCodable {
        ["lightId": .init(lightId), "triggerTime": .init(CoatyTimestamp.nowMillis())]
    }

    private func numbers(_ json: AnyCodable?) -> [Double]? {
        guard case .array(let elements) = json else { return nil }
        let numbers = elements.compactMap(number)
        return numbers.count == elements.count ? numbers : nil
    }

    private func number(_ json: AnyCodable) -> Double? {
        switch json {
        case .integer(let integer): Double(integer)
        case .double(let double): double
        default: nil
        }
    }
}
