import Synchronization

/// The connections on which clients observe, and what they have been told.
///
/// Its lock is taken when a connection opens or closes and when somebody asks for the counts, and never with an outlet's.
final class OpenStreams: Sendable {
    /// How a connection carries frames.
    enum Transport: String {
        case webSocket = "websocket"
        case sse
    }

    /// A subscription whose client does not read fast enough.
    struct SlowConsumer {
        /// The number of its connection.
        let connection: Int
        let transport: Transport
        let subscription: LaneStatistics
    }

    struct Statistics {
        var connections = 0
        var subscriptions = 0
        /// The events that were handed to connections, and those that were lost because clients did not read, since the start.
        var told: Int
        var lost: Int
        /// The events that wait for clients to read, without what throttling holds back.
        var waiting = 0
        /// The worst first.
        var slowConsumers: [SlowConsumer] = []
    }

    /// The most slow consumers that are told.
    static let maximumSlowConsumers = 20

    private struct State {
        var streams: [Int: (outlet: Outlet, transport: Transport)] = [:]
        var lastNumber = 0
        /// What those have been told, and have lost, that are no longer open.
        var told = 0
        var lost = 0
    }

    private let state = Mutex(State())

    /// Adds a connection.
    ///
    /// - Returns: its number.
    func add(_ outlet: Outlet, _ transport: Transport) -> Int {
        state.withLock { state in
            state.lastNumber += 1
            state.streams[state.lastNumber] = (outlet, transport)
            return state.lastNumber
        }
    }

    /// Removes a connection, whose outlet is closed.
    func remove(_ number: Int) {
        // What is closed is told nothing more. It is removed behind this, so that the counts do not shrink in between.
        guard let statistics = state.withLock(\.streams[number]?.outlet)?.statistics else { return }
        state.withLock { state in
            guard state.streams.removeValue(forKey: number) != nil else { return }
            state.told += statistics.told
            state.lost += statistics.lost
        }
    }

    var statistics: Statistics {
        let now = state.withLock(\.self)
        var sum = Statistics(connections: now.streams.count, told: now.told, lost: now.lost)
        for (number, (outlet, transport)) in now.streams {
            let statistics = outlet.statistics
            sum.told += statistics.told
            sum.lost += statistics.lost
            sum.subscriptions += statistics.subscriptions.count
            for subscription in statistics.subscriptions where subscription.isSlow {
                sum.waiting += subscription.waiting
                sum.slowConsumers.append(.init(connection: number, transport: transport, subscription: subscription))
            }
            // Not only at the end, so that a crowd of them takes no more room.
            if sum.slowConsumers.count > 2 * Self.maximumSlowConsumers { sum.keepWorst() }
        }
        sum.keepWorst()
        return sum
    }
}

extension OpenStreams.Statistics {
    fileprivate mutating func keepWorst() {
        slowConsumers.sort { one, other in
            (one.subscription.lost, one.subscription.waiting, other.connection)
                > (other.subscription.lost, other.subscription.waiting, one.connection)
        }
        slowConsumers.removeLast(max(0, slowConsumers.count - OpenStreams.maximumSlowConsumers))
    }
}

/// How a subscription stands.
struct LaneStatistics {
    /// The client's name for it; nil where its connection has one alone.
    let id: String?
    let event: StreamRequest.Event
    let overflow: StreamOptions.Overflow
    /// The events that wait for the client to read, and their bytes, without what throttling holds back.
    let waiting: Int
    let waitingBytes: Int
    /// The events that were lost since it began, because the client did not read.
    let lost: Int

    /// Nil for a request.
    init?(_ queue: LaneQueue) {
        guard let wanted = queue.lane.wanted else { return nil }
        id = queue.lane.id
        event = wanted.event
        overflow = queue.lane.options.overflow
        waiting = queue.waiting
        waitingBytes = queue.waitingBytes
        lost = queue.lostInAll
    }

    /// Whether the client does not read fast enough, or did not.
    var isSlow: Bool { waiting > 0 || lost > 0 }
}
