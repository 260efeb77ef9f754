import TestSupport
import Testing

@testable import Coaty

/// The state machine of a session.
@Suite(.exclusive) struct SessionStateTests {
    private let error = ConnectionError(.closed, "closed")

    /// A reference type, because `#expect` can't call mutating functions of a value.
    @dynamicMemberLookup
    private final class Machine {
        private var state = SessionState()

        func handle(_ event: SessionState.Event, subscriptions: Int = 0) -> [SessionState.Action] {
            state.handle(event, subscriptions: subscriptions)
        }

        subscript<Value>(dynamicMember member: KeyPath<SessionState, Value>) -> Value { state[keyPath: member] }
    }

    private func machine(_ events: SessionState.Event..., subscriptions: Int = 0) -> Machine {
        let machine = Machine()
        for event in events { _ = machine.handle(event, subscriptions: subscriptions) }
        return machine
    }

    @Test func joinsAndGoesOnlineWithTheLastAnswer() {
        let state = Machine()
        #expect(state.handle(.start) == [.prepare(life: 1)])
        #expect(state.handle(.prepared(life: 1)) == [.join(life: 1)])
        #expect(state.handle(.failed(life: 1, error)) == [] && state.connectionError == error)
        #expect(state.handle(.connected(life: 1), subscriptions: 2) == [.beginPeriod(1), .awaitAnswers(period: 1)])
        #expect(state.sends && state.onlinePeriod == nil && state.connectionError == nil)
        #expect(state.handle(.answered(life: 1, period: 1)) == [])
        #expect(state.handle(.answered(life: 1, period: 1)) == [.announceOnline(period: 1)])
        #expect(state.onlinePeriod == 1)
        #expect(state.handle(.answersOverdue(period: 1)) == [], "it is online already")
        #expect(state.handle(.lost(life: 1, error)) == [.endPeriod, .announceOffline])
        #expect(state.connectionError == error)
        // Without subscriptions, the period starts immediately.
        #expect(state.handle(.connected(life: 1)) == [.beginPeriod(2), .announceOnline(period: 2)])
    }

    @Test func goesOnlineWhenAnswersAreOverdue() {
        let state = machine(.start, .prepared(life: 1), .connected(life: 1), subscriptions: 1)
        #expect(state.handle(.answersOverdue(period: 0)) == [])
        #expect(state.handle(.answersOverdue(period: 1)) == [.announceOnline(period: 1)])
        #expect(state.handle(.answered(life: 1, period: 1)) == [])
    }

    @Test func leavesAfterItsControllers() {
        let state = machine(.start, .prepared(life: 1), .connected(life: 1))
        #expect(state.handle(.stop) == [.drain(life: 1)] && state.sends && !state.isStarted)
        #expect(
            state.handle(.drained(life: 1)) == [
                .queueLast(withFarewell: true), .announceOffline, .leave(life: 1),
            ]
        )
        #expect(!state.sends && state.isConnected)
        #expect(state.handle(.lost(life: 1, nil)) == [.endPeriod])
        #expect(state.handle(.left(life: 1)) == [.discard, .resumeStopped] && state.phase == .stopped)
    }

    @Test func lateConnectionOnlyDisconnects() {
        let state = machine(.start, .prepared(life: 1), .stop, .drained(life: 1))
        #expect(state.handle(.connected(life: 1)) == [.queueLast(withFarewell: false)])
        #expect(state.handle(.left(life: 1)) == [.endPeriod, .discard, .resumeStopped])
    }

    @Test func startDuringAStopStartsAgain() {
        let state = machine(.start, .prepared(life: 1), .stop, .start, .drained(life: 1))
        #expect(state.handle(.left(life: 1)) == [.discard, .resumeStopped, .prepare(life: 2)])
        // Late events of the first life are ignored.
        #expect(state.handle(.prepared(life: 1)) == [] && state.handle(.left(life: 1)) == [])
        #expect(state.handle(.prepared(life: 2)) == [.join(life: 2)])
        #expect(state.handle(.connected(life: 1)) == [] && !state.sends)
    }

    @Test func closedSessionDoesNotRestart() {
        let state = machine(.start, .prepared(life: 1), .stop, .close, .start, .stop, .drained(life: 1), .left(life: 1))
        #expect(state.phase == .closed)
        #expect(state.handle(.start) == [] && state.phase == .closed)
    }

    @Test func stopBeforeTheControllersArePreparedJoinsNothing() {
        let state = machine(.start, .stop)
        #expect(state.handle(.prepared(life: 1)) == [] && state.handle(.connected(life: 1)) == [])
        #expect(state.handle(.drained(life: 1)) == [.discard, .resumeStopped])
    }

    /// Events in any order, including impossible ones, and events of other lives and periods.
    @Test(arguments: 0..<200 as Range<UInt64>) func invariantsHoldForRandomEvents(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var state = SessionState()
        var model = SessionModel()
        for _ in 0..<500 {
            let event = randomEvent(state, &generator)
            let subscriptions = Int.random(in: 0...3, using: &generator)
            let before = state
            let actions = state.handle(event, subscriptions: subscriptions)
            try model.check(event, actions, before, state)
        }
    }

    private func randomEvent(_ state: SessionState, _ generator: inout SeededGenerator) -> SessionState.Event {
        let life = Int.random(in: 0..<10, using: &generator) == 0 ? state.life - 1 : state.life
        let period = Int.random(in: 0..<10, using: &generator) == 0 ? state.period - 1 : state.period
        switch Int.random(in: 0..<20, using: &generator) {
        case 0...1: return .start
        case 2: return .stop
        case 3: return Int.random(in: 0..<20, using: &generator) == 0 ? .close : .stop
        case 4...5: return .prepared(life: life)
        case 6...7: return .drained(life: life)
        case 8...10: return .connected(life: life)
        case 11...13: return .answered(life: life, period: period)
        case 14: return .answersOverdue(period: period)
        case 15: return .failed(life: life, error)
        case 16...17: return .lost(life: life, error)
        default: return .left(life: life)
        }
    }
}

/// A model of the effects of a session's actions.
private struct SessionModel {
    private var isJoined = false
    private var isPeriodOpen = false
    private var isOnline = false
    private var isLastQueued = false
    private var lastPeriod = 0

    mutating func check(
        _ event: SessionState.Event,
        _ actions: [SessionState.Action],
        _ before: SessionState,
        _ after: SessionState
    ) throws {
        for action in actions {
            switch action {
            case .prepare(let life): try #require(life == before.life + 1 && !isJoined)
            case .join:
                try #require(!isJoined && !isPeriodOpen)
                isJoined = true
            case .beginPeriod(let period):
                try #require(isJoined && !isPeriodOpen && period > lastPeriod)
                (isPeriodOpen, lastPeriod, isLastQueued) = (true, period, false)
            case .awaitAnswers(let period): try #require(isPeriodOpen && period == lastPeriod)
            case .announceOnline(let period):
                try #require(isPeriodOpen && !isOnline && period == lastPeriod)
                isOnline = true
            case .announceOffline: isOnline = false
            case .endPeriod:
                try #require(isPeriodOpen || isLastQueued, "\(event)")
                isPeriodOpen = false
            case .drain: try #require(before.isStarted)
            case .queueLast(let withFarewell):
                try #require(withFarewell == isPeriodOpen)
                isLastQueued = true
            case .leave: break
            case .discard:
                try #require(!isPeriodOpen && !isOnline)
                (isJoined, isLastQueued) = (false, false)
            case .resumeStopped: break
            }
        }
        try #require(after.sends == (isPeriodOpen && !isLastQueued))
        try #require((after.onlinePeriod != nil) == isOnline)
        try #require(after.life >= before.life && after.period >= before.period && after.period <= before.period + 1)
        if before.phase == .closed { try #require(after == before && actions.isEmpty) }
    }
}
