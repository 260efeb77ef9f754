import Base
package import Coaty
import Coordination
import Synchronization

/// The broker sessions over which the gateway observes raw events, so that a flood of them does not delay Coaty events.
///
/// Clients are distributed over the sessions, so that a client that observes a flood disturbs few others. Sessions are
/// opened on demand, and stay until the gateway's main session ends, so that connecting and disconnecting clients open
/// no further ones.
package final class RawSessions: Component {
    private struct State {
        /// The opened sessions; nil for a session that could not be opened.
        var sessions: [RawSession?]
        /// The session of each client that has feeds on it, and the number of these feeds.
        var clients: [ClientKey: (session: Int, feeds: Int)] = [:]
        /// Number of clients of each session.
        var loads: [Int]

        mutating func take(_ client: ClientKey) -> Int {
            if let used = clients[client] {
                clients[client] = (used.session, used.feeds + 1)
                return used.session
            }
            let least = loads.indices.min { loads[$0] < loads[$1] } ?? 0
            loads[least] += 1
            clients[client] = (least, 1)
            return least
        }

        mutating func give(_ client: ClientKey) {
            guard let used = clients[client] else { return }
            guard used.feeds == 1 else {
                clients[client] = (used.session, used.feeds - 1)
                return
            }
            clients[client] = nil
            loads[used.session] -= 1
        }
    }

    /// A feed's use of a session. Ends when it is released.
    final class Place: Sendable {
        let session: RawSession
        private let client: ClientKey
        private let sessions: RawSessions

        fileprivate init(_ session: RawSession, _ client: ClientKey, in sessions: RawSessions) {
            self.session = session
            self.client = client
            self.sessions = sessions
        }

        deinit { sessions.state.withLock { $0.give(client) } }
    }

    /// The messages of all sessions.
    package let messageCounts = MessageCounts()
    private let state: Mutex<State>
    private let open: @Sendable (MessageCounts) throws -> RawSession

    /// - Parameters:
    ///   - maximum: maximum number of sessions, at least 1.
    ///   - open: opens a session, whose messages it counts.
    package init(maximum: Int, open: @escaping @Sendable (MessageCounts) throws -> RawSession) {
        state = Mutex(
            State(sessions: Array(repeating: nil, count: maximum), loads: Array(repeating: 0, count: maximum))
        )
        self.open = open
    }

    /// Returns the session for a feed that a client has opened.
    ///
    /// - Throws: an error if the session can't be opened.
    func place(for client: ClientKey) throws -> Place {
        try state.withLock { state in
            let index = state.take(client)
            if let session = state.sessions[index], !session.hasEnded { return Place(session, client, in: self) }
            do {
                let session = try open(messageCounts)
                state.sessions[index] = session
                return Place(session, client, in: self)
            } catch {
                state.give(client)
                throw error
            }
        }
    }

    func start() async {}

    /// Closes all sessions.
    func stop() async {
        let sessions = state.withLock(\.sessions)
        await withTaskGroup { group in
            for session in sessions.compactMap(\.self) { group.addTask { await session.stop() } }
        }
    }
}
