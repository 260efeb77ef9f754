package import Access
package import Base
package import Network
package import ProblemDetails
import Synchronization

/// The open connections of clients with subscriptions, and the counts of delivered and dropped events.
///
/// The lock is held to add or remove a connection and to read the counts, never together with the lock of an outbound
/// queue.
package final class ClientConnections: Sendable {
    /// The protocol that carries the frames of a connection.
    package enum Transport: String {
        case webSocket = "websocket"
        case sse
        /// A stream of the responses to one request. It is not a connection with subscriptions.
        case ndjson
    }

    /// A subscription whose client reads too slowly.
    package struct SlowConsumer {
        /// The number that ``add(_:_:)`` returned for the connection.
        package let connection: Int
        package let transport: Transport
        package let subscription: SubscriptionStatistics
    }

    package struct Statistics {
        package var connections = 0
        package var subscriptions = 0
        /// Events handed to connections since the gateway started.
        package var delivered: Int
        /// Events dropped because clients read too slowly, since the gateway started.
        package var dropped: Int
        /// Gaps because filters were too expensive, since the gateway started.
        package var leftOut: Int
        /// Events queued because clients read too slowly, without events that throttling holds back.
        package var queued = 0
        /// Bytes queued, including those of events that throttling holds back.
        package var queuedBytes = 0
        /// At most ``maximumSlowConsumers``, ordered by dropped events, then by queued events, the most first.
        package var slowConsumers: [SlowConsumer] = []
    }

    /// Maximum number of slow consumers in the statistics.
    static let maximumSlowConsumers = 20

    private struct State {
        /// By their numbers.
        var connections: [Int: ClientConnection] = [:]
        /// The notice for new connections; nil if there is none.
        var notice: ServerFrame.Notice?
        var lastNumber = 0
        /// Totals of the connections that have been removed.
        var delivered = 0
        var dropped = 0
        var leftOut = 0
    }

    private let state = Mutex(State())

    /// Adds a connection and returns its number.
    ///
    /// - Parameters:
    ///   - address: the IP address of the client.
    ///   - identity: returns the Coaty identity of the client; nil if it has none.
    package func add(
        _ outbound: OutboundQueue,
        _ transport: Transport,
        from address: String,
        identity: @escaping @Sendable () -> ClientIdentity? = { nil }
    ) -> Int {
        let (number, notice) = state.withLock { state in
            state.lastNumber += 1
            state.connections[state.lastNumber] = ClientConnection(
                number: state.lastNumber,
                transport: transport,
                address: address,
                outbound: outbound,
                identity: identity
            )
            return (state.lastNumber, state.notice)
        }
        if let notice { outbound.reply(.notice(notice), id: nil) }
        return number
    }

    /// Sends a notice to all connections, and while the gateway is paused also to new connections.
    package func announce(_ notice: ServerFrame.Notice) {
        let connections = state.withLock { state in
            state.notice = notice == .active ? nil : notice
            return state.connections.values.map(\.outbound)
        }
        for outbound in connections { outbound.reply(.notice(notice), id: nil) }
    }

    /// Reports a problem to a client that no reply belongs to, on all its WebSocket connections.
    package func report(_ problem: Problem, to client: ClientKey) {
        for connection in all where connection.transport == .webSocket && connection.client == client {
            connection.outbound.reply(.error(problem), id: nil)
        }
    }

    /// Removes a connection. Its outbound queue must be closed.
    package func remove(_ number: Int) {
        // The counts of a closed queue are final. The connection is removed and its counts are added to the totals
        // under one lock, so that the sums never decrease.
        guard let statistics = state.withLock(\.connections[number]?.outbound)?.statistics else { return }
        state.withLock { state in
            guard state.connections.removeValue(forKey: number) != nil else { return }
            state.delivered += statistics.delivered
            state.dropped += statistics.dropped
            state.leftOut += statistics.leftOut
        }
    }

    /// The number of connections and of streams of responses.
    package var count: Int { state.withLock(\.connections.count) }

    /// All connections and streams of responses.
    var all: [ClientConnection] { state.withLock { Array($0.connections.values) } }

    /// Returns the connection with a number; nil if it has closed.
    package subscript(number: Int) -> ClientConnection? { state.withLock { $0.connections[number] } }

    /// Ends the connection of a client that has the most bytes queued.
    ///
    /// - Returns: false if the client has none.
    package func abortLargest(of client: ClientKey) -> Bool {
        let largest = all.map(\.outbound).filter { $0.account.client == client }.max { $0.memory.used < $1.memory.used }
        largest?.abort()
        return largest != nil
    }

    /// The current counts over all connections.
    package var statistics: Statistics {
        let now = state.withLock(\.self)
        let connections = now.connections.values.filter { $0.transport != .ndjson }
        var sum = Statistics(
            connections: connections.count,
            delivered: now.delivered,
            dropped: now.dropped,
            leftOut: now.leftOut
        )
        for connection in connections {
            let statistics = connection.outbound.statistics
            sum.queuedBytes += statistics.queuedBytes
            sum.delivered += statistics.delivered
            sum.dropped += statistics.dropped
            sum.leftOut += statistics.leftOut
            sum.subscriptions += statistics.subscriptions.count
            for subscription in statistics.subscriptions where subscription.isSlow {
                sum.queued += subscription.queued
                sum.slowConsumers.append(
                    .init(connection: connection.number, transport: connection.transport, subscription: subscription)
                )
            }
            // Trimmed in the loop as well, so that the list stays bounded with many slow consumers.
            if sum.slowConsumers.count > 2 * Self.maximumSlowConsumers { sum.keepWorst() }
        }
        sum.keepWorst()
        return sum
    }
}

extension ClientConnections.Statistics {
    fileprivate mutating func keepWorst() {
        slowConsumers.sort { one, other in
            (one.subscription.dropped, one.subscription.queued, other.connection)
                > (other.subscription.dropped, other.subscription.queued, one.connection)
        }
        slowConsumers.removeLast(max(0, slowConsumers.count - ClientConnections.maximumSlowConsumers))
    }
}

/// The state of one subscription's queue.
package struct SubscriptionStatistics {
    /// The client's id of the subscription; nil on a connection with a single subscription.
    package let id: String?
    package let event: AccessPattern
    package let overflow: SubscriptionOptions.Overflow
    /// Events queued until the client reads, without events that throttling holds back.
    package let queued: Int
    /// The bytes of the queued events.
    package let queuedBytes: Int
    /// Events dropped because the client read too slowly, since the subscription began.
    package let dropped: Int

    /// Reads the state of a queue; nil for the queue of a request.
    init?(_ queue: SubscriptionQueue) {
        guard let wanted = queue.subscription.wanted else { return nil }
        id = queue.subscription.id
        event = wanted.pattern
        overflow = queue.subscription.options.overflow
        queued = queue.queued
        queuedBytes = queue.queuedBytes
        dropped = queue.droppedInAll
    }

    /// Whether the client reads too slowly now, or has done so before.
    var isSlow: Bool { queued > 0 || dropped > 0 }
}
