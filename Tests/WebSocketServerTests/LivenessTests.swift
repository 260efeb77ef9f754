import Foundation
import TestSupport
import Testing

@testable import WebSocketServer

/// A client on a slow link, for which more is queued than it takes, was cut although it read all the time.
@Suite(.exclusive) struct LivenessTests {
    /// Offers messages of 4 kB, 50 in a second, until it is released.
    private final class Load: Sendable {
        private let connection: WebSocketConnection

        init(_ connection: WebSocketConnection) {
            self.connection = connection
            let frame = WebSocketFrame(text: String(repeating: "x", count: 4000))
            Thread.detachNewThread {
                while connection.offer(frame) != .closed { usleep(20_000) }
            }
        }

        deinit { connection.close(code: 1000) }
    }

    private func makeFixture(ping: Duration, pong: Duration) throws -> Fixture {
        var configuration = WebSocketServer.Configuration()
        configuration.pingInterval = ping
        configuration.pongTimeout = pong
        configuration.unresponsiveCode = 4003
        configuration.closeTimeout = .milliseconds(500)
        return try Fixture(configuration)
    }

    /// Opens a connection whose client gets much more than it takes.
    private func openSlow(_ fixture: Fixture) throws -> (WebSocketClient, Load) {
        let client = try WebSocketClient(port: fixture.port, receiveBuffer: 4096)
        try client.shakeHands()
        try #require(fixture.handler.waits { $0.open.count == 1 })
        return (client, Load(try #require(fixture.handler.current.open.first)))
    }

    @Test func slowReaderIsKeptAlthoughItsPongsAreMissing() throws {
        // Each time, the socket is read for several messages together.
        let fixture = try makeFixture(ping: .milliseconds(300), pong: .seconds(3))
        let (client, load) = try openSlow(fixture)
        let end = Date(timeIntervalSinceNow: 10)
        while end.timeIntervalSinceNow > 0 {
            _ = try client.receive()
            // About 6 kB in a second.
            usleep(600_000)
        }
        #expect(fixture.handler.current.closes.isEmpty)
        withExtendedLifetime(load) {}
    }

    @Test func clientThatStopsReadingIsGivenUpWithACode() throws {
        let fixture = try makeFixture(ping: .milliseconds(300), pong: .seconds(1))
        let (client, load) = try openSlow(fixture)
        #expect(fixture.handler.waits { $0.closes.values.first == 4003 })
        #expect(client.isEnded())
        withExtendedLifetime(load) {}
    }

    @Test func pingsDoNotWaitBehindQueuedMessages() throws {
        let fixture = try makeFixture(ping: .seconds(1), pong: .seconds(5))
        let (client, load) = try openSlow(fixture)
        // The number of messages before each ping.
        var messages = [0]
        while messages.count < 5 {
            switch try client.receive() {
            case .ping(let payload):
                try client.sendPong(payload)
                messages.append(0)
            default:
                messages[messages.count - 1] += 1
                usleep(600_000)
            }
        }
        // Those of the interval, and what was on its way: much less than was offered meanwhile.
        #expect(messages.allSatisfy { $0 < 25 }, "\(messages)")
        #expect(fixture.handler.current.closes.isEmpty)
        withExtendedLifetime(load) {}
    }

    @Test func messageIsASignOfLife() throws {
        let fixture = try makeFixture(ping: .milliseconds(300), pong: .milliseconds(600))
        let client = try fixture.open()
        for _ in 0..<15 {
            try client.sendText("x")
            usleep(200_000)
        }
        #expect(fixture.handler.current.closes.isEmpty)
    }

    // MARK: - Decisions

    private let start = ContinuousClock.now

    private func liveness() -> Liveness {
        Liveness(pingInterval: .seconds(30), pongTimeout: .seconds(15), now: start)
    }

    @Test func frozenClientWhoseKernelTakesEverythingIsGivenUp() {
        var liveness = liveness()
        #expect(liveness.step(.init(taken: 0, isWaiting: false), now: start + .seconds(30)) == .ping)
        #expect(liveness.step(.init(taken: 9000, isWaiting: false), now: start + .seconds(44)) == .nothing)
        #expect(liveness.step(.init(taken: 9000, isWaiting: false), now: start + .seconds(45)) == .giveUp)
    }

    @Test func drainingQueueGivesTimeUntilItStops() {
        var liveness = liveness()
        #expect(liveness.step(.init(taken: 0, isWaiting: true), now: start + .seconds(30)) == .ping)
        for turn in 1...9 {
            let now = start + .seconds(30 + 15 * turn)
            #expect(liveness.step(.init(taken: turn, isWaiting: turn < 9), now: now) == .nothing)
        }
        #expect(liveness.step(.init(taken: 10, isWaiting: false), now: start + .seconds(180)) == .giveUp)
    }

    @Test func fullQueueThatDoesNotDrainIsGivenUp() {
        var liveness = liveness()
        #expect(liveness.step(.init(taken: 5, isWaiting: true), now: start + .seconds(30)) == .ping)
        #expect(liveness.step(.init(taken: 5, isWaiting: true), now: start + .seconds(45)) == .giveUp)
    }

    /// After a pause of the process, a pong may wait to be read when the timer fires.
    @Test func unreadInputGivesTime() {
        var liveness = liveness()
        #expect(liveness.step(.init(taken: 0, isWaiting: false), now: start + .seconds(30)) == .ping)
        #expect(liveness.step(.init(taken: 0, isWaiting: false, hasInput: true), now: start + .seconds(99)) == .nothing)
        #expect(liveness.step(.init(taken: 0, isWaiting: false), now: start + .seconds(114)) == .giveUp)
    }

    @Test func pongDelaysTheNextPing() {
        var liveness = liveness()
        #expect(liveness.step(.init(taken: 0, isWaiting: false), now: start + .seconds(30)) == .ping)
        liveness.heard(isPong: true, now: start + .seconds(31))
        #expect(liveness.step(.init(taken: 0, isWaiting: false), now: start + .seconds(60)) == .nothing)
        #expect(liveness.step(.init(taken: 0, isWaiting: false), now: start + .seconds(61)) == .ping)
    }

    @Test func limitOfUnsentBytesFollowsTheSpeed() {
        var limit = UnsentLimit()
        #expect(!limit.isSlow && limit.drained(now: start) == nil)
        limit.filled(now: start)
        #expect(limit.drained(now: start + .milliseconds(1200)) == UnsentLimit.slowest)
        #expect(limit.isSlow)
        for bytes in [16, 32, 64, 128] {
            limit.filled(now: start)
            #expect(limit.drained(now: start + .milliseconds(10)) == bytes << 10)
        }
        limit.filled(now: start)
        #expect(limit.drained(now: start + .milliseconds(10)) == nil)
        limit.filled(now: start)
        #expect(limit.drained(now: start + .milliseconds(500)) == nil)
        #expect(!limit.isSlow)
    }
}
