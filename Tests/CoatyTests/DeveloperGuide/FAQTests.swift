import CoatyMQTT
import Foundation
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// The examples of the chapter "FAQ".
@Suite(.exclusive) struct FAQTests {
    // MARK: Interacting with controllers

    @Test @ControllerActor func interactsWithAController() async throws {
        let network = try GuideNetwork()
        let coatyContainer = try network.agent(["ExampleController": ExampleController.self])
        try await network.join(coatyContainer)

        let view = View(coatyContainer)
        #expect(try await view.names.wait(for: 1) == ["Example"])
        let unknown: ExampleController? = coatyContainer.getController(name: "Unknown")
        #expect(unknown == nil)
        await network.end(coatyContainer)
    }

    // MARK: Managing Observable subscriptions

    @Test @ControllerActor func disposeBagEndsWithTheCommunicationManager() async throws {
        let network = try GuideNetwork()
        let container = try network.agent(["ExampleController": ExampleController.self])
        try await network.join(container)
        let controller: ExampleController = try #require(container.getController(name: "ExampleController"))
        #expect(controller.ended.values.isEmpty)
        await container.communicationManager.stop()
        _ = try await controller.ended.wait(for: 1)
        await network.end(container)
    }

    @Test @ControllerActor func endsAnObservationByLeavingTheLoop() async throws {
        let network = try GuideNetwork()
        let container = try network.agent()
        let manager = container.communicationManager
        try await network.join(container)
        let before = manager.session.core.withLock { $0.subscriptions.count }
        let taken = Task {
            var ids: [CoatyUUID] = []
            for await event in manager.observeDeadvertise().prefix(2) { ids += event.data.objectIds }
            return ids
        }
        // Publish repeatedly, because nothing reports when the task starts to observe.
        let publishing = Task {
            while true {
                try manager.publishDeadvertise(.with(objectIds: CoatyUUID()))
                try await Task.sleep(for: .milliseconds(1))
            }
        }
        #expect(try await withPatience { await taken.value }.count == 2)
        publishing.cancel()
        #expect(manager.session.core.withLock { $0.subscriptions.count } == before, "the observation has ended")
        await network.end(container)
    }

    @Test @ControllerActor func endsAnObservationByHand() async throws {
        let network = try GuideNetwork()
        let container = try network.agent()
        let events = container.communicationManager.observeDeadvertise()
        let observing = Task { for await _ in events {} }
        try await network.join(container)
        #expect(events.end == nil)
        observing.cancel()
        try await withPatience { await observing.value }
        #expect(events.end == .cancelled)
        await network.end(container)
    }

    // MARK: Communication State vs Operating State

    @Test @ControllerActor func reportsOperatingAndCommunicationState() async throws {
        let network = try GuideNetwork()
        let manager = try network.agent().communicationManager
        #expect(try await first(of: manager.getOperatingState()) == .stopped)
        #expect(try await first(of: manager.getCommunicationState()) == .offline)

        manager.start()
        try await untilState(manager.getOperatingState(), .started)
        try await untilState(manager.getCommunicationState(), .online)

        network.broker.kill()
        try await untilState(manager.getCommunicationState(), .offline)
        #expect(try await first(of: manager.getOperatingState()) == .started, "the agent connects again")

        await manager.stop()
        #expect(try await first(of: manager.getOperatingState()) == .stopped)
        #expect(try await first(of: manager.getCommunicationState()) == .offline)
        network.broker.stop()
    }

    @Test @ControllerActor func publicationsWhileOfflineAreDeferred() async throws {
        let network = try GuideNetwork()
        let container = try network.agent()
        let manager = container.communicationManager
        let events = manager.observeDeadvertise()
        let objectId = CoatyUUID()
        #expect(try manager.publishDeadvertise(.with(objectIds: objectId)) == .deferred)
        manager.start()
        #expect(try await first(of: events).data.objectIds == [objectId])
        #expect(try manager.publishDeadvertise(.with(objectIds: objectId)) == .sent)
        await network.end(container)
    }

    @Test @ControllerActor func stopDiscardsDeferredPublications() async throws {
        let network = try GuideNetwork()
        let container = try network.agent()
        let manager = container.communicationManager
        network.broker.kill()
        manager.start()
        let discarded = CoatyUUID()
        let events = manager.observeDeadvertise()
        #expect(try manager.publishDeadvertise(.with(objectIds: discarded)) == .deferred)
        await manager.stop()
        let seen = try await withPatience { await events.reduce(into: 0) { count, _ in count += 1 } }
        #expect(seen == 0, "the subscription has ended")

        try network.broker.restart()
        let kept = CoatyUUID()
        let later = manager.observeDeadvertise()
        #expect(try manager.publishDeadvertise(.with(objectIds: kept)) == .deferred)
        manager.start()
        #expect(try await first(of: later).data.objectIds == [kept])
        await network.end(container)
    }

    // MARK: Inspecting Coaty object types and AnyCodables

    @Test func printsObjectsAndValues() throws {
        let task = CoatyTask(creatorId: .init(), creationTimestamp: 1, status: .request, name: "MyTask")
        #expect(try task.json.contains(#""name":"MyTask""#))

        let parameters: [String: AnyCodable] = [
            "on": .init(true),
            "color": .init([255, 140, 0, 1]),
            "luminosity": .init(0.75),
            "switchTime": .init(10),
        ]
        #expect(
            try PayloadCoder.encode(parameters)
                == #"{"color":[255,140,0,1],"luminosity":0.75,"on":true,"switchTime":10}"#
        )
    }

    // MARK: Distributed lifecycle management

    @Test @ControllerActor func tracksTheLifecycleOfAgents() async throws {
        let network = try GuideNetwork()
        let watcher = try network.agent()
        let gone = watcher.communicationManager.observeDeadvertise()
        let other = try network.agent()
        try await network.join(watcher, other)

        // The agent is discoverable while it is in the network,
        let found = try watcher.communicationManager.publishDiscover(.with(objectId: other.identity.objectId))
        #expect(try await first(of: found).data.object?.objectId == other.identity.objectId)

        // and deadvertised when it leaves.
        await other.communicationManager.stop()
        #expect(try await first(of: gone).data.objectIds == [other.identity.objectId])
        await network.end(watcher, other)
    }

    // MARK: Event echo suppression

    @Test @ControllerActor func filtersEchoesOut() async throws {
        let network = try GuideNetwork()
        let listener = try network.agent(["EchoFilter": EchoFilter.self])
        let other = try network.agent()
        try await network.join(listener, other)
        let controller: EchoFilter = try #require(listener.getController(name: "EchoFilter"))

        let echo = try listener.communicationManager.publishDiscover(.with(externalId: "own"))
        _ = try await controller.echoes.wait(for: 1)
        let answers = try other.communicationManager.publishDiscover(.with(externalId: "other's"))
        #expect(try await controller.discovers.wait(for: 1) == ["other's"])
        withExtendedLifetime((echo, answers)) {}
        await network.end(listener, other)
    }
}

private func untilState<State: Sendable & Equatable>(_ states: AsyncStream<State>, _ wanted: State) async throws {
    try await withPatience {
        for await state in states where state == wanted { return }
        throw TimedOut()
    }
}

@ControllerActor
private protocol ExampleControllerDelegate: AnyObject {
    func controller(_ controller: ExampleController, didSee name: String)
}

private final class ExampleController: Controller {
    weak var delegate: (any ExampleControllerDelegate)?
    let ended = Recorder<Bool>()

    override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        let events = communicationManager.observeAdvertise(withCoreType: .CoatyObject)
        Task {
            for await event in events { delegate?.controller(self, didSee: try event.data.object.name) }
            ended.append(true)
        }
        .disposed(by: disposeBag)
    }

    func advertiseExample() throws {
        let example = CoatyObject(
            coreType: .CoatyObject,
            objectType: "com.example.Example",
            objectId: .init(),
            name: "Example"
        )
        try communicationManager.publishAdvertise(.with(object: example))
    }
}

/// A replacement for the view controller of the guide.
@ControllerActor
private final class View: ExampleControllerDelegate {
    let names = Recorder<String>()
    private var controller: ExampleController?

    init(_ coatyContainer: Container) {
        controller = coatyContainer.getController(name: "ExampleController")

        // Set the view as the delegate.
        controller?.delegate = self

        // Call methods of the controller.
        do {
            try controller?.advertiseExample()
        } catch {
            Issue.record(error)
        }
    }

    func controller(_ controller: ExampleController, didSee name: String) { names.append(name) }
}

private final class EchoFilter: Controller {
    let discovers = Recorder<String?>()
    let echoes = Recorder<String?>()

    override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        let events = communicationManager.observeDiscover()
        Task {
            for await discoverEvent in events where discoverEvent.sourceId != container.identity.objectId {
                // Handle non-echo events only.
                discovers.append(discoverEvent.data.externalId)
            }
        }
        .disposed(by: disposeBag)

        let own = communicationManager.observeDiscover()
        Task {
            for await discoverEvent in own where discoverEvent.sourceId == container.identity.objectId {
                echoes.append(discoverEvent.data.externalId)
            }
        }
        .disposed(by: disposeBag)
    }
}
