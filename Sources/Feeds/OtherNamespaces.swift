import Base
package import Coaty
import Coordination
import Synchronization

/// Counts the agents that have joined other namespaces, so that users who miss an agent learn where it is.
///
/// Agents advertise themselves only when they join: agents that joined before the gateway connected are not counted. If
/// the broker does not allow the subscriptions, no agents are counted.
package final class OtherNamespaces: Component {
    /// Maximum number of namespaces. Agents of further ones are not counted.
    static let maximumNamespaces = 16
    /// Maximum number of counted agents of a namespace.
    static let maximumAgents = 1000
    /// Maximum size of a namespace's name, in bytes. Agents of a namespace with a longer name are not counted.
    static let maximumName = 200

    package struct Namespace: Sendable, Hashable {
        package let name: String
        package let agents: Int
    }

    private struct State {
        var subscription: Subscription?
        /// The agents of each namespace.
        var agents: [WireName: Set<KeyedDigest>] = [:]
    }

    private let manager: CommunicationManager
    /// Counts the session, so that a stop can wait until it is closed.
    private let sessions: TrafficSessions
    private let state = Mutex(State())

    /// - Parameter messageCounts: counts the messages of the session.
    package init(_ manager: CommunicationManager, messageCounts: MessageCounts) {
        self.manager = manager
        sessions = TrafficSessions(feeds: 1, messageCounts: messageCounts)
    }

    func start() async throws {
        let place = sessions.take()
        let subscription = try manager.subscribeToAgentsOfAllNamespaces(
            messageCounts: sessions.messageCounts,
            onStatus: { [weak self] status in
                // Departures of agents meanwhile are not noticed. Agents that stay connected are not counted again.
                if status == .offline { self?.forget() }
            },
            handler: { [weak self] event in withExtendedLifetime(place) { self?.take(event) } }
        )
        state.withLock { $0.subscription = subscription }
    }

    func stop() async {
        let subscription = state.withLock { $0.subscription.take() }
        subscription?.cancel()
        await sessions.stop()
    }

    /// The namespaces with agents, by name.
    package var all: [Namespace] {
        state.withLock { state in
            state.agents.map { Namespace(name: $0.key.text, agents: $0.value.count) }.sorted { $0.name < $1.name }
        }
    }

    private func forget() { state.withLock { $0.agents = [:] } }

    /// Handles an event of an agent of any namespace.
    func take(_ event: TrafficEvent) {
        let address = event.address
        guard address.namespace != manager.namespace, address.namespace.utf8.count <= Self.maximumName else { return }
        let name = WireName(address.namespace)
        let agent = KeyedDigest(address.sourceId)
        switch address.eventType {
        case .advertise:
            state.withLock { state in
                guard state.agents[name] != nil || state.agents.count < Self.maximumNamespaces,
                    state.agents[name, default: []].count < Self.maximumAgents
                else { return }
                state.agents[name, default: []].insert(agent)
            }
        case .deadvertise:
            // An agent also deadvertises single objects. When it leaves, the event contains its identity.
            guard let ids = event.payload?.json["objectIds"]?.elements,
                ids.contains(where: { $0.string == address.sourceId.string })
            else { return }
            state.withLock { state in
                guard state.agents[name]?.remove(agent) != nil else { return }
                if state.agents[name]?.isEmpty ?? false { state.agents[name] = nil }
            }
        default: break
        }
    }
}
