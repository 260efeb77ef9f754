import Coaty
import Testing

@testable import Cluster

struct PeerTableTests {
    private static let own = "a0"
    private let peer = CoatyUUID()

    private func head(_ sequence: UInt64, sees: [String] = [own], time: Int64 = 0, session: String = "b0")
        -> PeerMessage.Head
    {
        PeerMessage.Head(from: peer, session: session, sequence: sequence, time: time, sees: sees)
    }

    private func advance(_ table: inout PeerTable, to now: Duration, online: Duration? = .zero) -> [PeerTable.Change] {
        table.advance(to: now, timeout: .seconds(10), online: online, memory: .seconds(60))
    }

    @Test func peersAreLiveOnceTheySeeThisGateway() {
        var table = PeerTable(session: Self.own)
        let first = table.receive(head(1, sees: []), at: .zero)
        #expect(!first.isAccepted && first.needsReply && first.changes.isEmpty && table.live.isEmpty)
        #expect(table.seen == ["b0"])
        let second = table.receive(head(2), at: .zero)
        #expect(second.isAccepted && !second.needsReply && second.changes == [.joined(peer)])
        #expect(table.live.map(\.id) == [peer])
        // It no longer receives the messages of this gateway.
        #expect(table.receive(head(3, sees: []), at: .zero).changes == [.missing(peer)])
        #expect(table.live.isEmpty)
    }

    @Test func repeatedMessagesHaveNoEffect() {
        var table = PeerTable(session: Self.own)
        _ = table.receive(head(5), at: .zero)
        for sequence in [UInt64(0), 4, 5] {
            let reception = table.receive(head(sequence), at: .seconds(1))
            #expect(!reception.isAccepted && reception.changes.isEmpty)
        }
        // A message that was missed, and is repeated much later.
        #expect(!table.receive(head(6), at: .seconds(11)).isAccepted)
        #expect(table.receive(head(7, time: 12_000), at: .seconds(12)).isAccepted)
    }

    @Test func anotherAgentCannotUseASession() {
        var table = PeerTable(session: Self.own)
        _ = table.receive(head(1), at: .zero)
        let other = PeerMessage.Head(from: CoatyUUID(), session: "b0", sequence: 2, time: 0, sees: [Self.own])
        #expect(!table.receive(other, at: .zero).isAccepted)
    }

    @Test func deadvertisedPeersLeaveUnlessTheyShowThatTheyLive() {
        var table = PeerTable(session: Self.own)
        _ = table.receive(head(1), at: .zero)
        table.suspect(peer, at: .seconds(1))
        #expect(advance(&table, to: .milliseconds(1400)).isEmpty)
        _ = table.receive(head(2, time: 1400), at: .milliseconds(1400))
        #expect(advance(&table, to: .seconds(5)).isEmpty)
        table.suspect(peer, at: .seconds(5))
        #expect(advance(&table, to: .milliseconds(5600)) == [.left(peer)])
        #expect(advance(&table, to: .milliseconds(5700)).isEmpty)
        // Only its broker connection was lost.
        #expect(table.receive(head(3, time: 6000), at: .seconds(6)).changes == [.joined(peer)])
    }

    @Test func reachableSilentPeersArePartitioned() {
        var table = PeerTable(session: Self.own)
        var first = head(1)
        first.url = "http://192.0.2.1/"
        _ = table.receive(first, at: .zero)
        _ = table.receive(head(2, time: 1000), at: .seconds(1))
        #expect(table.takeProbes(at: .seconds(5), interval: .seconds(10)).isEmpty)
        #expect(table.setReachable("b0", true) == nil && table.live.count == 1)
        #expect(advance(&table, to: .seconds(12)) == [.missing(peer)])
        #expect(table.takeProbes(at: .seconds(12), interval: .seconds(10)).map(\.url) == ["http://192.0.2.1/"])
        #expect(table.takeProbes(at: .seconds(22), interval: .seconds(10)).isEmpty)
        #expect(table.setReachable("b0", true) == peer)
        #expect(table.setReachable("b0", true) == nil)
        #expect(table.peers["b0"]?.presence == .partitioned && table.seen.isEmpty)
        #expect(advance(&table, to: .seconds(23)).isEmpty)
        // Another process may have its address now.
        var other = head(1, time: 22_000, session: "c0")
        other.url = first.url
        _ = table.receive(other, at: .seconds(22))
        #expect(table.takeProbes(at: .seconds(23), interval: .seconds(10)).isEmpty)
        other = head(2, time: 22_000, session: "c0")
        other.url = "http://192.0.2.2/"
        _ = table.receive(other, at: .seconds(22))
        // It may stop meanwhile.
        #expect(table.takeProbes(at: .seconds(23), interval: .seconds(10)).count == 1)
        #expect(table.setReachable("b0", false) == nil)
        #expect(table.peers["b0"]?.presence == .missing)
        #expect(table.setReachable("b0", true) == peer)
        #expect(table.receive(head(3, time: 30_000), at: .seconds(30)).changes == [.joined(peer)])
    }

    @Test func silentPeersAreMissing() {
        var table = PeerTable(session: Self.own)
        _ = table.receive(head(1), at: .zero)
        #expect(advance(&table, to: .seconds(10)).isEmpty)
        // While this gateway is offline, or was until a moment ago, silence means nothing.
        #expect(advance(&table, to: .seconds(11), online: nil).isEmpty)
        #expect(advance(&table, to: .seconds(11), online: .seconds(8)).isEmpty)
        #expect(advance(&table, to: .seconds(11)) == [.missing(peer)])
        #expect(table.seen.isEmpty)
        // It is remembered, because it may be alive on the other side of a partition.
        #expect(advance(&table, to: .seconds(1000)).isEmpty && table.peers.count == 1)
        table.suspect(peer, at: .seconds(1000))
        #expect(advance(&table, to: .seconds(1001)) == [.left(peer)])
        _ = advance(&table, to: .seconds(1062))
        #expect(table.peers.isEmpty)
    }

    @Test func stoppingPeersAreNotLive() {
        var table = PeerTable(session: Self.own)
        _ = table.receive(head(1), at: .zero)
        var last = head(2)
        last.isStopping = true
        #expect(table.receive(last, at: .zero).changes == [.stopping(peer)])
        #expect(table.live.isEmpty)
    }

    @Test func offsetFollowsTheFastestRecentMessage() {
        var table = PeerTable(session: Self.own)
        _ = table.receive(head(1, time: 1000), at: .milliseconds(5100))
        _ = table.receive(head(2, time: 2000), at: .milliseconds(6020))
        #expect(table.live.first?.offset == .milliseconds(4020))
        // The clock of the peer is slower by 1 ms per second.
        for second in Int64(0)..<300 {
            let head = head(UInt64(3 + second), time: 2000 + second * 999)
            _ = table.receive(head, at: .milliseconds(6020 + second * 1000))
        }
        let offset = table.live.first?.offset ?? .zero
        #expect(offset > .milliseconds(4020 + 150) && offset <= .milliseconds(4020 + 299))
    }

    @Test func ownMessagesThatComeBackTwiceAreALoop() {
        var table = PeerTable(session: Self.own)
        for sequence in UInt64(1)...10 { _ = table.receive(head(sequence, session: Self.own), at: .zero) }
        #expect(table.loops == 0)
        for sequence in UInt64(8)...9 { _ = table.receive(head(sequence, session: Self.own), at: .zero) }
        #expect(!table.hasLoop(at: .zero))
        _ = table.receive(head(10, session: Self.own), at: .seconds(1))
        #expect(table.loops == 3 && table.hasLoop(at: .seconds(1)) && !table.hasLoop(at: .seconds(200)))
    }

    @Test func numberOfSessionsIsBounded() {
        var table = PeerTable(session: Self.own)
        for number in 0..<1000 {
            _ = table.receive(head(1, sees: [], session: "c\(number)"), at: .seconds(number))
        }
        #expect(table.peers.count == PeerTable.maximumPeers)
        #expect(table.peers["c999"] != nil && table.peers["c0"] == nil)
    }
}
