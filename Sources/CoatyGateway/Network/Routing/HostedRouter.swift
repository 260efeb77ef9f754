import Coaty
import Logging

/// The router of a context that the gateway hosts.
final class HostedRouter: RuleBasedIoRouter {
    /// An Update of the gateway's own that is on its way.
    struct Expected {
        let payload: [UInt8]
        /// The version that it must be made on; nil where it is meant to replace any.
        let base: EntityTag?
        /// Called where it was another one by then.
        let onRefused: @Sendable () -> Void
    }

    /// Where associations are told, and changes are kept.
    struct Surroundings {
        let feed: RoutingFeed
        let store: RoutingStore?
        /// The context as it is configured.
        var configured: HostedContext
    }

    private var expected: Expected?
    /// What the Update that was expected has changed; nil before it was taken over.
    private(set) var changes: IoAssociationChanges?
    /// Writes down what the latest Update has made of the context.
    private(set) var keeping: Task<Void, any Error>?
    private var surroundings: Surroundings?

    func settle(in surroundings: Surroundings) { self.surroundings = surroundings }

    /// Notes other configured rules.
    func reconfigure(_ configured: HostedContext) {
        surroundings?.configured = configured
        surroundings?.store?.reconfigure(configured)
    }

    override func onAssociationsChanged(_ changes: IoAssociationChanges) {
        guard let id = ioContext?.objectId else { return }
        surroundings?.feed.tell(id, changes)
    }

    override func shouldUpdateIoContext(by event: UpdateEvent) -> Bool {
        guard let expected, isExpected(event), let base = expected.base, base != ioContextJSON.map(EntityTag.init)
        else { return true }
        self.expected = nil
        expected.onRefused()
        return false
    }

    override func onIoContextUpdated(by event: UpdateEvent, from previous: IoContext, changes: IoAssociationChanges) {
        if isExpected(event) {
            self.changes = changes
            expected = nil
        }
        do {
            keeping = try keep()
        } catch {
            keeping = Task { throw error }
        }
        guard let keeping else { return }
        Task {
            do {
                try await keeping.value
            } catch {
                container.logger.error("a change of an IO context was not stored", metadata: ["error": "\(error)"])
            }
        }
    }

    private func isExpected(_ event: UpdateEvent) -> Bool {
        event.sourceId == communicationManager.identityId && event.payload.bytes == expected?.payload
    }

    /// Awaits an Update of the gateway's own.
    func expect(_ update: Expected) {
        expected = update
        changes = nil
    }

    /// Has the context and its rules written down as they are, in the order of the calls.
    ///
    /// - Returns: the writing; nil where there is no state directory.
    func keep() throws -> Task<Void, any Error>? {
        guard let surroundings, let store = surroundings.store, let json = ioContextJSON else { return nil }
        guard case .object(var members) = AnyCodable(json) else { return nil }
        // The identity is another one after a restart.
        if surroundings.configured.context.root["parentObjectId"] == nil { members["parentObjectId"] = nil }
        let document = try JSONDocument(Array(PayloadCoder.encode(AnyCodable.object(members)).utf8))
        return try store.save(HostedContext(context: document.root, rules: rules))
    }
}
