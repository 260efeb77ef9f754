import Foundation
import TestSupport
import Testing

/// Two gateways at the same broker, of which clients see one after the other.
@Suite(.frameChecks) struct TwoGatewaysTests {
    // MARK: - Cursors

    private static let channel = #""event":"channel","channelId":"c""#

    private func number(_ object: [String: Any]) -> Int? { (object["name"] as? String).flatMap { Int($0) } }

    @Test func aCursorOfAnotherGatewayIsAGapAndNothingOld() throws {
        let scene = try Scene()
        let other = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(scene.broker.port)"])
        try waitUntil("the other is ready") { try other.request("GET", "/readyz").status == 200 }
        let count = 500
        func publish(_ numbers: Range<Int>) throws {
            for number in numbers {
                try scene.agent.publish("coaty/3/-/CHN:c/source", #"{"object":\#(Scene.job("\(number)"))}"#)
            }
        }
        // Both keep all events in their replay buffers.
        let clients = [try scene.gateway.frameClient(), try other.frameClient()]
        for client in clients { try client.subscribe("s", Self.channel) }
        try publish(0..<count)
        let cursors = try clients.map { client in
            try (0..<count).map { _ in try #require(try client.next(of: "s")["cursor"]) }
        }
        for position in [0, 100, count - 1] {
            let cursor = cursors[0][position]
            #expect(cursor != cursors[1][position])
            let resumed = try other.frameClient()
            try resumed.subscribe("r", Self.channel + #","since":"\#(cursor)""#)
            let gap = try resumed.next(of: "r")
            #expect(gap.op == "gap" && gap.json["dropped"] is NSNull, "\(gap)")
            let events = try other.eventStream("channel?channelId=c", headers: [("Last-Event-ID", cursor)])
            let reported = try #require(try events.next())
            #expect(reported.json["dropped"] is NSNull, "\(reported)")
            let next = count + (position == 0 ? 0 : position == 100 ? 1 : 2)
            try publish(next..<next + 1)
            // The next event is the first new one: there are no duplicates.
            #expect(try number(resumed.next(of: "r").object) == next)
            let data = try #require(try events.next()).json["data"] as? [String: Any]
            #expect(number(try #require(data?["object"] as? [String: Any])) == next)
        }
        // The gateway that wrote a cursor does resume from it.
        let known = try other.frameClient()
        try known.subscribe("k", Self.channel + #","since":"\#(cursors[1][100])""#)
        #expect(try number(known.next(of: "k").object) == 101)
    }
}
