import Foundation
import TestSupport
import Testing

/// A client that stops reading for a while.
@Suite(.exclusive, .frameChecks) struct OverflowTests {
    private static let rounds = 600
    private static let ids = 10
    private static let buffer = 16

    /// Publishes `rounds` events of `ids` objects in turns that the client does not read, while another client receives
    /// each.
    private func flood(_ scene: Scene, _ client: FrameClient) throws {
        let reader = try scene.gateway.frameClient("channel?channelId=load")
        #expect(try reader.next().op == "ok")
        let filler = String(repeating: "x", count: 20_000)
        for round in 0..<Self.rounds {
            let object =
                #"{"coreType":"CoatyObject","objectType":"t","objectId":"\#(round % Self.ids)","name":"n","#
                + #""round":\#(round),"filler":"\#(filler)"}"#
            try scene.agent.publish("coaty/3/-/CHN:load/source", #"{"object":\#(object)}"#)
            #expect(try reader.next().object["round"] as? Int == round)
        }
    }

    private enum Delivered: Equatable {
        case event(Int)
        case gap(Int)
    }

    /// Reads the client's frames up to the last event.
    private func read(_ client: FrameClient) throws -> [Delivered] {
        var delivered: [Delivered] = []
        while delivered.last != .event(Self.rounds - 1) {
            let frame = try client.next(of: "s")
            switch frame.op {
            case "event": delivered.append(.event(try #require(frame.object["round"] as? Int)))
            case "gap": delivered.append(.gap(try #require(frame.json["dropped"] as? Int, "\(frame)")))
            default: throw FrameClient.Failure.inVain("\(frame)", [])
            }
        }
        return delivered
    }

    private func scene(_ overflow: String?) throws -> (Scene, FrameClient) {
        let scene = try Scene()
        let client = try scene.gateway.frameClient(receiveBuffer: 4096)
        let option = overflow.map { #","overflow":"\#($0)""# } ?? ""
        try client.subscribe("s", #""event":"channel","channelId":"load","buffer":\#(Self.buffer)"# + option)
        return (scene, client)
    }

    @Test(arguments: [nil, "dropOldest"]) func dropOldestKeepsNewestEvents(_ overflow: String?) throws {
        let (scene, client) = try scene(overflow)
        try flood(scene, client)
        let queuedBytes = try scene.gateway.metric("coaty_gateway_queued_bytes") ?? 0
        #expect(try scene.gateway.metric("coaty_gateway_queued_events") ?? 0 >= Double(Self.buffer))
        #expect(queuedBytes > Double(Self.buffer * 20_000))
        #expect(try scene.gateway.metric(#"coaty_gateway_memory_bytes{part="clients"}"#) ?? 0 > queuedBytes)
        let delivered = try read(client)
        var next = 0
        var gaps = 0
        var dropped = 0
        for item in delivered {
            switch item {
            case .event(let round):
                #expect(round == next)
                next = round + 1
            case .gap(let lost):
                next += lost
                dropped += lost
                gaps += 1
            }
        }
        #expect(gaps > 0)
        let counted = try scene.gateway.metric(#"coaty_gateway_events_dropped_total{reason="slow_client"}"#)
        #expect(counted == Double(dropped))
        #expect(try scene.gateway.metric("coaty_gateway_queued_events") == 0)
        // After the last gap, all events that the buffer holds are delivered.
        let last = delivered.lastIndex { if case .gap = $0 { true } else { false } } ?? 0
        #expect(delivered[(last + 1)...].count == Self.buffer)
        // The connection still works.
        #expect(try client.ask("ping").op == "pong")
    }

    @Test func latestKeepsNewestEventOfEachObject() throws {
        let (scene, client) = try scene("latest")
        try flood(scene, client)
        let delivered = try read(client)
        let rounds = delivered.compactMap { if case .event(let round) = $0 { round } else { nil } }
        let lost = delivered.reduce(0) { if case .gap(let lost) = $1 { $0 + lost } else { $0 } }
        #expect(lost > 0 && rounds.count + lost == Self.rounds)
        #expect(rounds == rounds.sorted())
        #expect(Set(rounds).isSuperset(of: Self.rounds - Self.ids..<Self.rounds))
    }

    @Test func closeEndsOnlyTheSubscription() throws {
        let (scene, client) = try scene("close")
        try client.subscribe("other", #""event":"channel","channelId":"quiet""#)
        try flood(scene, client)
        while true {
            let frame = try client.next(of: "s")
            if frame.op == "event" { continue }
            #expect(frame.op == "done" && frame["reason"] == "overflow")
            break
        }
        // Other subscriptions stay open, and the id is free.
        try scene.agent.publish("coaty/3/-/CHN:quiet/source", #"{"object":\#(Scene.job("q"))}"#)
        #expect(try client.next(of: "other").object["name"] as? String == "q")
        try client.subscribe("s", #""event":"channel","channelId":"load""#)
    }
}
