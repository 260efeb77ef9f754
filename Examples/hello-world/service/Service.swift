import Coaty
import ExampleSupport
import HelloWorldModel

/// A service that advertises task requests, and assigns each to the first client that offers to carry it out.
@main
struct Service {
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
                config.common = CommonOptions(agentIdentity: ["name": "Hello World Service"])
                config.communication = try Agent.communicationOptions(namespace: "com.helloworld")
            }
        )
    }
}

private final class TaskController: Controller {
    /// Maximum number of open requests and running tasks. If it is exceeded, the oldest is abandoned.
    static let maximumTasks = 100
    static let requestInterval = Duration.seconds(1)

    private var tasks: [HelloWorldTask] = []

    override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        Task { try await assignTasks() }.disposed(by: disposeBag)
        Task { try await trackTasks() }.disposed(by: disposeBag)
        Task { try await generateRequests() }.disposed(by: disposeBag)
    }

    private func generateRequests() async throws {
        for number in 1... {
            let request = HelloWorldTask(
                name: "Hello World Task \(number)",
                creatorId: container.identity.objectId,
                urgency: .critical
            )
            if tasks.count == Self.maximumTasks { tasks.removeFirst() }
            tasks.append(request)
            try communicationManager.publishAdvertise(.with(object: request))
            Agent.say("requested: \(request.name)")
            try await Task.sleep(for: Self.requestInterval)
        }
    }

    private func assignTasks() async throws {
        for await event in try communicationManager.observeUpdate(withObjectType: HelloWorldTask.objectType) {
            guard let offer = try? event.data.object as? HelloWorldTask,
                let task = tasks.first(where: { $0.objectId == offer.objectId })
            else { continue }
            // A client whose offer comes too late learns from the response which client has the task.
            if task.status == .request {
                task.status = .pending
                task.assigneeObjectId = offer.assigneeObjectId
                task.dueTimestamp = offer.dueTimestamp
                task.lastModificationTimestamp = .nowMillis()
                Agent.say("assigned: \(task.name)")
                try communicationManager.publishAdvertise(.with(object: task))
            }
            try event.complete(.with(object: task))
        }
    }

    private func trackTasks() async throws {
        for await event in try communicationManager.observeAdvertise(withObjectType: HelloWorldTask.objectType) {
            guard let task = try? event.data.object as? HelloWorldTask, task.status == .done else { continue }
            tasks.removeAll { $0.objectId == task.objectId }
            Agent.say("done: \(task.name)")
        }
    }
}
