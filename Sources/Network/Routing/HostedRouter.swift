import Base
package import Coaty
import Logging

/// The router of a context that the gateway hosts.
package final class HostedRouter: RuleBasedIoRouter {
    /// The feed for associations, and the store for changes.
    package struct Surroundings {
        let feed: RoutingFeed
        let store: RoutingStore?
        /// The configured context.
        var configured: HostedContext

        package init(feed: RoutingFeed, store: RoutingStore?, configured: HostedContext) {
            self.feed = feed
            self.store = store
            self.configured = configured
        }
    }

    /// Stores the context after the latest update.
    private(set) var keeping: Task<Void, any Error>?
    private var surroundings: Surroundings?
    /// Called with the duration of each change, including decisions.
    var evaluationHandler: (@Sendable (Duration) -> Void)?
    /// The version of the context and its rules in the cluster.
    package var version = RoutingVersion()
    /// Called when the context or its rules were changed, before they are stored; returns whether the change stays. Nil
    /// without a cluster.
    var changeHandler: (() -> Bool)?

    package func settle(in surroundings: Surroundings) { self.surroundings = surroundings }

    /// Sets the changed configuration of the context.
    func reconfigure(_ configured: HostedContext) {
        surroundings?.configured = configured
        surroundings?.store?.reconfigure(configured)
    }

    package override func onAssociationsChanged(_ changes: IoAssociationChanges) {
        guard let id = ioContext?.objectId else { return }
        surroundings?.feed.report(id, changes)
    }

    package override func onEvaluated(duration: Duration) { evaluationHandler?(duration) }

    package override func onIoContextUpdated(
        by event: UpdateEvent,
        from previous: IoContext,
        changes: IoAssociationChanges
    ) {
        _ = changeHandler?()
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

    /// Stores the current context and its rules, in the order of the calls.
    ///
    /// - Returns: the task that writes them; nil if there is no state directory.
    func keep() throws -> Task<Void, any Error>? {
        guard let surroundings, let store = surroundings.store, let json = ioContextJSON else { return nil }
        guard case .object(var members) = AnyCodable(json) else { return nil }
        // The identity has a different id after a restart.
        if surroundings.configured.context.root["parentObjectId"] == nil { members["parentObjectId"] = nil }
        let document = try JSONDocument(encoding: AnyCodable.object(members))
        var context = try HostedContext(context: document.root, rules: rules)
        context.version = version
        return store.save(context)
    }

    /// Decodes the context of another gateway.
    ///
    /// - Throws: `PayloadError` if it is not a version of this one.
    func accept(
        _ context: JSONView,
        _ rules: [IoAssociationRule]
    ) throws -> sending (context: IoContext, rules: [IoAssociationRule]) {
        let accepted = try HostedContext(context: context, rules: rules)
        guard accepted.objectId == ioContext?.objectId, ioContext.map({ WireName($0.name) }) == WireName(accepted.name)
        else { throw PayloadError.invalid(pointer: "/name", reason: "is that of another context") }
        return (try accepted.object, rules)
    }
}
