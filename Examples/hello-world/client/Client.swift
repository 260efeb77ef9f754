import Coaty
import ExampleSupport
import HelloWorldModel

/// A client that offers to carry out the tasks that the service requests, one at a time.
@main
struct Client {
    static func main() async throws {
        let container = try await start()
        await Agent.untilTerminated()
        await container.shutdown()
    }

    @ControllerActor
    private static func start() throws -> Container {
        try Container.resolve(
            components: Components(
                controllers: ["TaskController": TaskController.self],
                objectTypes: [HelloWorldTask.self]
            ),
            configuration: .build { config in
                config.common = CommonOptions(agentIdentity: ["name": "Hello World Client"])
                config.communication = try Agent.communicationOptions(namespace: "com.helloworld")
            }
        )
    }
}

private final class TaskController: Controller {
    static let answerLimit = Duration.seconds(5)
    static let taskDuration = Duration.milliseconds(100)

    private var isBusy = false

    override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        isBusy = false
        Task {
            for await event in try communicationManager.observeAdvertise(withObjectType: HelloWorldTask.objectType) {
                guard let request = try? event.data.object as? HelloWorldTask, request.status == .request else {
                    continue
                }
                take(request)
            }
        }
        .disposed(by: disposeBag)
    }

    private func take(_ request: HelloWorldTask) {
        guard !isBusy else {
            Agent.say("busy: \(request.name)")
            return
        }
        isBusy = true
        Task {
            defer { isBusy = false }
            do {
                try await offer(request)
            } catch {
                Agent.say("failed: \(request.name): \(error)")
            }
        }
        .disposed(by: disposeBag)
    }

    private func offer(_ request: HelloWorldTask) async throws {
        request.dueTimestamp = .nowMillis()
        request.assigneeObjectId = container.identity.objectId
        let answers = try communicationManager.publishUpdate(.with(object: request), timeLimit: Self.answerLimit)
        for await answer in answers {
            guard let task = try answer.data.object as? HelloWorldTask else { continue }
            if task.assigneeObjectId == container.identity.objectId {
                try await carryOut(task)
            } else {
                Agent.say("rejected: \(task.name)")
            }
            return
        }
    }

    private func carryOut(_ task: HelloWorldTask) async throws {
        Agent.say("accepted: \(task.name)")
        try advertise(task, as: .inProgress)
        try await Task.sleep(for: Self.taskDuration)
        task.doneTimestamp = .nowMillis()
        try advertise(task, as: .done)
        Agent.say("done: \(task.name)")
    }

    private func advertise(_ task: HelloWorldTask, as status: TaskStatus) throws {
        task.status = status
        task.lastModificationTimestamp = .nowMillis()
        try communicationManager.publishAdvertise(.with(object: task))
    }
}
