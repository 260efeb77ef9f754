/// The lifecycle of a session with a broker, and the only place that defines whether the agent is connected.
///
/// A pure state machine: ``handle(_:)`` maps a state and an event to the next state and to the actions that the session
/// performs. Numbers identify where events belong: a *life* is one `start` with its `stop`, a *period* is one
/// connection. Both numbers only increase. An event of an earlier life or period has no effect.
struct SessionState: Sendable, Equatable {
    enum Phase: Sendable, Equatable {
        case stopped
        /// The controllers prepare; the session is not connected.
        case starting
        case running(Connection)
        /// The controllers act on the stop, still connected if they were before; nil if the binding was not asked to
        /// join.
        case stopping(Connection?, then: Next)
        /// The binding performs the remaining operations.
        case leaving(isConnected: Bool, then: Next)
        /// Stopped permanently.
        case closed
    }

    enum Connection: Sendable, Equatable {
        /// Not connected. The error is the reason why the last attempt failed or the last connection was lost.
        case down(ConnectionError?)
        /// Connected. The broker has not yet answered some of the subscriptions that existed when the connection came
        /// up.
        case joining(period: Int, unanswered: Int)
        /// Connected, and all these subscriptions are answered, or the time for the answers is over.
        case online(period: Int)
    }

    /// The next step after a stop.
    enum Next: Sendable, Equatable { case stop, start, close }

    enum Event: Sendable, Equatable {
        case start
        /// The controllers are prepared for the start.
        case prepared(life: Int)
        case stop
        /// Stop permanently.
        case close
        /// The controllers have acted on the stop.
        case drained(life: Int)
        case connected(life: Int)
        /// The broker has answered one of the subscriptions that existed when the connection came up.
        case answered(life: Int, period: Int)
        /// The time for these answers is over.
        case answersOverdue(period: Int)
        case failed(life: Int, ConnectionError)
        case lost(life: Int, ConnectionError?)
        /// The binding has left.
        case left(life: Int)
    }

    enum Action: Sendable, Equatable {
        /// Calls the controllers' preparation, then reports `prepared`.
        case prepare(life: Int)
        case join(life: Int)
        /// Queues subscriptions, join events and deferred publications.
        case beginPeriod(Int)
        /// Schedules `answersOverdue`.
        case awaitAnswers(period: Int)
        case announceOnline(period: Int)
        case announceOffline
        /// Keeps unwritten publications, and marks all subscriptions as offline.
        case endPeriod
        /// Calls the controllers' stop handlers, then reports `drained`.
        case drain(life: Int)
        /// Queues the farewell, if the agent was announced, and the disconnect.
        case queueLast(withFarewell: Bool)
        /// Makes the binding leave, then reports `left`.
        case leave(life: Int)
        /// Discards publications and observations.
        case discard
        case resumeStopped
    }

    private(set) var phase = Phase.stopped
    private(set) var life = 0
    private(set) var period = 0

    mutating func handle(_ event: Event, subscriptions: Int = 0) -> [Action] {
        switch (phase, event) {
        case (.stopped, .start):
            life += 1
            phase = .starting
            return [.prepare(life: life)]
        case (.starting, .prepared(life)):
            phase = .running(.down(nil))
            return [.join(life: life)]
        case (.starting, .stop), (.starting, .close):
            phase = .stopping(nil, then: event == .close ? .close : .stop)
            return [.drain(life: life)]
        case (.running(let connection), .stop), (.running(let connection), .close):
            phase = .stopping(connection, then: event == .close ? .close : .stop)
            return [.drain(life: life)]
        case (.stopped, .close):
            phase = .closed
            return []
        case (.stopping(let connection, let next), .start), (.stopping(let connection, let next), .stop),
            (.stopping(let connection, let next), .close):
            phase = .stopping(connection, then: next.replaced(by: event))
            return []
        case (.leaving(let isConnected, let next), .start), (.leaving(let isConnected, let next), .stop),
            (.leaving(let isConnected, let next), .close):
            phase = .leaving(isConnected: isConnected, then: next.replaced(by: event))
            return []
        case (.stopping(nil, let next), .drained(life)):
            return [.discard] + followed(by: next)
        case (.stopping(let connection?, let next), .drained(life)):
            phase = .leaving(isConnected: connection.isUp, then: next)
            return (connection.isUp ? [.queueLast(withFarewell: true), .announceOffline] : []) + [.leave(life: life)]
        case (.leaving(let isConnected, let next), .left(life)):
            return (isConnected ? [.endPeriod] : []) + [.discard] + followed(by: next)
        case (.running(let connection), _):
            guard let (next, actions) = changed(connection, by: event, subscriptions) else { return [] }
            phase = .running(next)
            return actions
        case (.stopping(let connection?, let then), _):
            guard let (next, actions) = changed(connection, by: event, subscriptions) else { return [] }
            phase = .stopping(next, then: then)
            return actions
        case (.leaving(false, let next), .connected(life)):
            // The agent was not announced over this connection, so no farewell is needed.
            phase = .leaving(isConnected: true, then: next)
            return [.queueLast(withFarewell: false)]
        case (.leaving(true, let next), .lost(life, _)):
            phase = .leaving(isConnected: false, then: next)
            return [.endPeriod]
        default:
            return []
        }
    }

    private mutating func followed(by next: Next) -> [Action] {
        switch next {
        case .stop:
            phase = .stopped
            return [.resumeStopped]
        case .close:
            phase = .closed
            return [.resumeStopped]
        case .start:
            phase = .stopped
            return [.resumeStopped] + handle(.start)
        }
    }

    /// Returns the changed state after an event of the connection; nil if nothing changes.
    private mutating func changed(
        _ connection: Connection,
        by event: Event,
        _ subscriptions: Int
    ) -> (Connection, [Action])? {
        switch (connection, event) {
        case (.down, .connected(life)):
            period += 1
            guard subscriptions > 0 else {
                return (.online(period: period), [.beginPeriod(period), .announceOnline(period: period)])
            }
            return (
                .joining(period: period, unanswered: subscriptions),
                [.beginPeriod(period), .awaitAnswers(period: period)]
            )
        case (.joining(period, let unanswered), .answered(life, period)):
            guard unanswered == 1 else { return (.joining(period: period, unanswered: unanswered - 1), []) }
            return (.online(period: period), [.announceOnline(period: period)])
        case (.joining(period, _), .answersOverdue(period)):
            return (.online(period: period), [.announceOnline(period: period)])
        case (.joining, .lost(life, let error)):
            return (.down(error), [.endPeriod])
        case (.online, .lost(life, let error)):
            return (.down(error), [.endPeriod, .announceOffline])
        case (.down, .failed(life, let error)):
            return (.down(error), [])
        default:
            return nil
        }
    }
}

extension SessionState.Connection {
    /// Whether the broker has accepted the connection.
    var isUp: Bool {
        switch self {
        case .down: false
        case .joining, .online: true
        }
    }
}

extension SessionState.Next {
    /// Returns the next step after a call: the last call wins, but a close is final.
    fileprivate func replaced(by event: SessionState.Event) -> Self {
        switch (self, event) {
        case (.close, _), (_, .close): .close
        case (_, .start): .start
        default: .stop
        }
    }
}

extension SessionState {
    /// The connection; nil if the phase has none.
    var connection: Connection? {
        switch phase {
        case .running(let connection): connection
        case .stopping(let connection, _): connection
        case .stopped, .starting, .leaving, .closed: nil
        }
    }

    /// Whether publications are sent over the current connection.
    var sends: Bool { connection?.isUp ?? false }

    /// The number of the current connection; nil if publications are not sent.
    var connectedPeriod: Int? { sends ? period : nil }

    /// Whether the binding has a connection.
    var isConnected: Bool {
        if case .leaving(let isConnected, _) = phase { isConnected } else { sends }
    }

    /// The number of the current connection if all subscriptions that existed when it came up are answered; otherwise
    /// nil.
    var onlinePeriod: Int? {
        if case .online(let period) = connection { period } else { nil }
    }

    /// Whether the session should be connected.
    var isStarted: Bool {
        switch phase {
        case .starting, .running: true
        case .stopped, .stopping, .leaving, .closed: false
        }
    }

    /// The reason why there is no connection; nil if there is one, or no attempt has failed.
    var connectionError: ConnectionError? {
        if case .down(let error) = connection { error } else { nil }
    }
}
