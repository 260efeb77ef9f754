import Foundation
import TestSupport
import Testing

/// Events that the gateway receives but does not accept.
@Suite(.exclusive, .frameChecks) struct LostEventTests {
    private static let topic = "coaty/3/-/CHN:c/00000000-0000-4000-8000-000000000001"

    private static func event(_ name: String, _ members: String = "") -> String {
        #"{"object":{"objectId":"00000000-0000-4000-8000-000000000002","coreType":"CoatyObject","objectType":"com.example.A","#
            + #""name":"\#(name)"\#(members)}}"#
    }

    @Test(arguments: [
        #","a":"\#(String(repeating: "x", count: 1 << 20))""#,
        #","a":[\#(Array(repeating: "1", count: 1000).joined(separator: ","))]"#,
    ])
    func oversizedEventsAreReportedAsGap(_ members: String) throws {
        let scene = try Scene(["--maximum-event-size", "1048576", "--maximum-event-values", "1000"])
        let client = try scene.gateway.frameClient()
        try client.subscribe("c", #""event":"channel","channelId":"c""#)
        try client.subscribe("other", #""event":"channel","channelId":"other""#)
        try client.subscribe("traffic", #""event":"traffic","events":["channel"]"#)
        try scene.agent.publish(Self.topic, Self.event("before"))
        try scene.agent.publish(Self.topic, Self.event("too much", members))
        try scene.agent.publish(Self.topic, Self.event("behind"))
        for id in ["c", "traffic"] {
            #expect(try client.next(of: id).op == "event")
            #expect(try client.next(of: id).op == "gap")
            #expect(try client.next(of: id).op == "event")
        }
        #expect(client.received.allSatisfy { $0.id != "other" || $0.op == "ok" })
        #expect(try scene.gateway.request("GET", "/readyz").status == 200)
    }
}
