import Coaty
import Logging

/// The router of a context that the gateway hosts.
final class HostedRouter: RuleBasedIoRouter {
    /// What an Update of the gateway's own has brought about.
    struct Outcome {
        let previous: EntityTag?
        let changes: IoAssociationChanges
    }

    /// Where associations are told, and changes are kept.
    struct Surroundings {
        let feed: RoutingFeed
        let store: RoutingStore?
        /// The context as it is configured.
        let configured: HostedContext
    }

    /// The payload of an Update of the gateway's own that is on its way.
    private var expected: [UInt8]?
    /// What became of it.
    private(set) var outcome: Outcome?
    /// Writes down what the latest Update has made of the context.
    private(set) var keeping: Task<Void, any Error>?
    private var surroundings: Surroundings?
    private var version: EntityTag?

    func settle(in surroundings: Surroundings) {
        self.surroundings = surroundings
        version = ioContextJSON.map(EntityTag.init)
    }

    override func onAssociationsChanged(_ changes: IoAssociationChanges) {
        guard let id = ioContext?.objectId else { return }
        surroundings?.feed.tell(id, changes)
    }

    override func onIoContextUpdated(by event: UpdateEvent, from previous: IoContext, changes: IoAssociationChanges) {
        if event.sourceId == communicationManager.identityId, event.payload.bytes == expected {
            outcome = Outcome(previous: version, changes: changes)
            expected = nil
        }
        version = ioContextJSON.map(EntityTag.init)
        let keeping = Task { try await keep() }
        self.keeping = keeping
        Task {
            do {
                try await keeping.value
            } catch {
                container.logger.error("an IO context was not kept", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Awaits an Update of the gateway's own.
    func expect(_ payload: [UInt8]) {
        expected = payload
        outcome = nil
    }

    /// Writes down the context and its rules, where there is a state directory.
    func keep() async throws {
        guard let surroundings, let store = surroundings.store, let json = ioContextJSON else { return }
        guard case .object(var members) = AnyCodable(json) else { return }
        // The identity is another one after a restart.
        if surroundings.configured.context.root["parentObjectId"] == nil { members["parentObjectId"] = nil }
        let document = try JSONDocument(Array(PayloadCoder.encode(AnyCodable.object(members)).utf8))
        try await store.save(HostedContext(context: document.root, rules: rules))
    }
}
