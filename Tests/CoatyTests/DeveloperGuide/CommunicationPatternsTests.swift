import Coaty
import TestSupport
import Testing

@testable import CoatyTestSupport

/// The examples of the chapter "Communication patterns".
@Suite(.exclusive) struct CommunicationPatternsTests {
    @Test @ControllerActor func publishesAndObservesAnAdvertiseEvent() async throws {
        let network = try GuideNetwork()
        let publisher = try network.agent()
        let observer = try network.agent(["TaskObserver": TaskObserver.self])
        try await network.join(publisher, observer)

        // Create a Task object.
        let myTaskObject = CoatyTask(
            creatorId: .init(),
            creationTimestamp: .nowMillis(),
            status: .request,
            name: "MyTask"
        )

        // Create the event.
        let event = try AdvertiseEvent.with(object: myTaskObject)

        // Publish the event by the communication manager.
        try publisher.communicationManager.publishAdvertise(event)

        let controller: TaskObserver = try #require(observer.getController(name: "TaskObserver"))
        #expect(try await controller.names.wait(for: 1) == ["MyTask"])
        await network.end(publisher, observer)
    }

    @Test @ControllerActor func publishesAndObservesDeadvertiseEvents() async throws {
        let network = try GuideNetwork()
        let agent = try network.agent()
        let events = agent.communicationManager.observeDeadvertise()
        try await network.join(agent)
        let objectId = CoatyUUID()
        try agent.communicationManager.publishDeadvertise(.with(objectIds: objectId))
        #expect(try await first(of: events).data.objectIds == [objectId])
        await network.end(agent)
    }

    @Test @ControllerActor func publishesAndObservesChannelEvents() async throws {
        let network = try GuideNetwork()
        let agent = try network.agent()
        let events = try agent.communicationManager.observeChannel(channelId: "42")
        try await network.join(agent)
        let object = CoatyObject(
            coreType: .CoatyObject,
            objectType: "com.mydomain.ExampleObject",
            objectId: .init(),
            name: "On channel 42"
        )
        try agent.communicationManager.publishChannel(.with(object: object, channelId: "42"))
        let event = try await first(of: events)
        #expect(try event.data.object?.name == "On channel 42")
        #expect(event.channelId == "42")
        await network.end(agent)
    }

    @Test @ControllerActor func publishesADiscoverEventAndObservesResolveEvents() async throws {
        let network = try GuideNetwork()
        let requester = try network.agent()
        let responder = try network.agent(["ExternalIdResponder": ExternalIdResponder.self])
        try await network.join(requester, responder)

        let discoverEvent = try DiscoverEvent.with(externalId: "an-external-id")
        let resolveEvents = try requester.communicationManager.publishDiscover(discoverEvent)

        let object = try #require(try await first(of: resolveEvents).data.object)
        #expect(object.name == "My resolved example object")
        #expect(object.externalId == "an-external-id")
        await network.end(requester, responder)
    }

    @Test @ControllerActor func publishesAQueryEventAndObservesRetrieveEvents() async throws {
        let network = try GuideNetwork()
        let requester = try network.agent()
        let responder = try network.agent(["TaskStore": TaskStore.self])
        try await network.join(requester, responder)

        let queryEvent = try QueryEvent.with(coreTypes: [.Task])
        let retrieveEvents = try requester.communicationManager.publishQuery(queryEvent)

        #expect(try await first(of: retrieveEvents).data.objects.map(\.name) == ["Stored task"])
        await network.end(requester, responder)
    }

    @Test @ControllerActor func publishesAnUpdateEventAndObservesCompleteEvents() async throws {
        let network = try GuideNetwork()
        let requester = try network.agent()
        let responder = try network.agent(["TaskStore": TaskStore.self])
        try await network.join(requester, responder)

        let task = CoatyTask(creatorId: .init(), creationTimestamp: .nowMillis(), status: .request, name: "MyTask")
        let completeEvents = try requester.communicationManager.publishUpdate(.with(object: task))

        let updated = try #require(try await first(of: completeEvents).data.object as? CoatyTask)
        #expect(updated.objectId == task.objectId)
        #expect(updated.status == .inProgress)
        await network.end(requester, responder)
    }

    @Test @ControllerActor func publishesACallEventAndObservesReturnEvents() async throws {
        let network = try GuideNetwork()
        let requester = try network.agent()
        let responder = try network.agent(["LightSwitch": LightSwitch.self])
        try await network.join(requester, responder)

        let callEvent = try CallEvent.with(
            operation: "com.example.switchLight",
            parameters: ["on": .init(true), "luminosity": .init(0.75)]
        )
        let result = try await first(of: requester.communicationManager.publishCall(callEvent))
        #expect(result.data.result == true)
        #expect(result.data.executionInfo == ["luminosity": 0.75])

        let wrong = try CallEvent.with(operation: "com.example.switchLight", parameters: ["on": "yes"])
        let failure = try await first(of: requester.communicationManager.publishCall(wrong))
        #expect(failure.data.error == ReturnError(code: .invalidParameters))
        #expect(failure.data.result == nil)
        await network.end(requester, responder)
    }

    @Test @ControllerActor func answersEndAtTheTimeLimit() async throws {
        let network = try GuideNetwork()
        let requester = try network.agent()
        let responder = try network.agent(["ExternalIdResponder": ExternalIdResponder.self])
        try await network.join(requester, responder)
        let resolveEvents = try requester.communicationManager.publishDiscover(
            .with(externalId: "an-external-id"),
            timeLimit: .seconds(1)
        )
        let answers = try await withPatience {
            var answers = 0
            for await _ in resolveEvents { answers += 1 }
            return answers
        }
        #expect(answers == 1)
        await network.end(requester, responder)
    }

    @Test @ControllerActor func publishesAndObservesRawEvents() async throws {
        let network = try GuideNetwork()
        let agent = try network.agent()
        let events = try agent.communicationManager.observeRaw(topic: "sensors/+/temperature")
        try await network.join(agent)
        try agent.communicationManager.publishRaw(.with(topic: "sensors/7/temperature", payload: "21.5"))
        let event = try await first(of: events)
        #expect(event.topic == "sensors/7/temperature")
        #expect(String(decoding: event.payload, as: UTF8.self) == "21.5")
        await network.end(agent)
    }
}

/// "Observe an Advertise event (one-way)"
private final class TaskObserver: Controller {
    let names = Recorder<String>()

    override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        let advertiseEvents = communicationManager.observeAdvertise(withCoreType: .Task)
        Task {
            for await advertiseEvent in advertiseEvents {
                guard let task = try? advertiseEvent.data.object as? CoatyTask else { continue }

                // Do something with this task...
                names.append(task.name)
            }
        }
        .disposed(by: disposeBag)
    }
}

/// "Observe a Discover event (two-way)"
private final class ExternalIdResponder: Controller {
    override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        let discoverEvents = communicationManager.observeDiscover()
        Task {
            for await discoverEvent in discoverEvents where discoverEvent.data.isDiscoveringExternalId() {
                let externalId = discoverEvent.data.externalId

                // Search for an object with the given external Id...
                let resolvedObject = CoatyObject(
                    coreType: .CoatyObject,
                    objectType: "com.mydomain.ExampleObject",
                    objectId: .init(),
                    name: "My resolved example object"
                )
                resolvedObject.externalId = externalId

                let event = try ResolveEvent.with(object: resolvedObject)
                try discoverEvent.resolve(event)
            }
        }
        .disposed(by: disposeBag)
    }
}

/// A controller that answers queries for tasks, and applies updates of tasks.
private final class TaskStore: Controller {
    override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        let queryEvents = communicationManager.observeQuery()
        Task {
            for await queryEvent in queryEvents where queryEvent.data.isCoreTypeCompatible(.Task) {
                let task = CoatyTask(
                    creatorId: communicationManager.identityId,
                    creationTimestamp: .nowMillis(),
                    status: .pending,
                    name: "Stored task"
                )
                try queryEvent.retrieve(.with(objects: [task]))
            }
        }
        .disposed(by: disposeBag)

        let updateEvents = communicationManager.observeUpdate(withCoreType: .Task)
        Task {
            for await updateEvent in updateEvents {
                guard let task = try updateEvent.data.object as? CoatyTask else { continue }
                task.status = .inProgress
                try updateEvent.complete(.with(object: task))
            }
        }
        .disposed(by: disposeBag)
    }
}

/// A controller that executes a remote operation.
private final class LightSwitch: Controller {
    override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        Task {
            for await callEvent in try communicationManager.observeCall(operation: "com.example.switchLight") {
                guard let on = callEvent.data.getParameterByName(name: "on")?.value as? Bool else {
                    try callEvent.returnEvent(.with(error: ReturnError(code: .invalidParameters)))
                    continue
                }
                let luminosity = callEvent.data.getParameterByName(name: "luminosity") ?? 1
                try callEvent.returnEvent(.with(result: .init(on), executionInfo: ["luminosity": luminosity]))
            }
        }
        .disposed(by: disposeBag)
    }
}
