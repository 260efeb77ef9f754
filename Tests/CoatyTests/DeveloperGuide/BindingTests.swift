import Coaty
import Dispatch
import Synchronization
import TestSupport
import Testing

/// The example of the chapter "Writing a binding".
@Suite(.exclusive, .timeLimit(.minutes(1))) struct BindingTests {
    @Test func anAgentReceivesItsOwnEvents() async throws {
        let options = CommunicationOptions { _ in LoopbackBinding() }
        let agent = try CommunicationManager(identity: Identity(), options: options)
        let events = agent.observeDeadvertise()
        let objectId = CoatyUUID()
        #expect(try agent.publishDeadvertise(.with(objectIds: objectId)) == .deferred)
        agent.start()
        for await event in events {
            #expect(event.data.objectIds == [objectId])
            break
        }
        #expect(agent.isConnected)
        await agent.stop()
        #expect(!agent.isConnected)
    }
}

private final class LoopbackBinding: Binding {
    private let queue = DispatchQueue(label: "loopback")
    private let session = Mutex<BindingSession?>(nil)

    func join(_ session: BindingSession) {
        queue.async { [self] in
            self.session.withLock { $0 = session }
            session.connected()
        }
    }

    func wake() {
        queue.async { [self] in performOperations() }
    }

    func leave() async {
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                performOperations()
                session.withLock { $0.take() }?.lost(nil)
                continuation.resume()
            }
        }
    }

    private func performOperations() {
        guard let session = session.withLock(\.self) else { return }
        while let operation = session.nextOperation() {
            switch operation {
            case .subscribe(let requests):
                for request in requests { session.answer(request, isGranted: true) }
            case .unsubscribe:
                break
            case .publish(let publication):
                session.publicationsWritten()
                if case .event(let address) = publication.destination {
                    let message = InboundMessage(.event(address), payload: publication.payload, label: "loopback")
                    session.received(message)
                }
            case .disconnect:
                return
            }
        }
    }

    func ioRoute(ofSource sourceId: CoatyUUID, namespace: String) -> String { "loopback/\(sourceId.string)" }
    func isIoRoute(_ route: String) -> Bool { route.hasPrefix("loopback/") }
    func isPublishable(rawTopic: String) -> Bool { false }
    func isObservable(rawTopicFilter: String) -> Bool { false }
}
