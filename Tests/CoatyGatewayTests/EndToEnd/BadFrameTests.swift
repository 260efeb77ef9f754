import Foundation
import TestSupport
import Testing

/// Invalid frames on `/v1/ws`: each is answered, and does not affect anything else.
@Suite(.exclusive, .frameChecks) struct BadFrameTests {
    private static let object = Scene.job("o")

    /// Texts that do not match the client schema, with the status and the pointer of the error.
    private static let invalid: [(String, Int, String?)] = [
        ("[]", 400, ""), ("null", 400, ""), ("1", 400, ""), (#""ping""#, 400, ""), ("{}", 400, "/id"),
        (#"{"op":"ping"}"#, 400, "/id"), (#"{"op":"ping","id":1}"#, 400, "/id"),
        (#"{"op":"ping","id":""}"#, 400, "/id"),
        (#"{"op":"ping","id":"\#(String(repeating: "i", count: 129))"}"#, 400, "/id"),
        (#"{"id":"x"}"#, 400, "/op"), (#"{"op":"shout","id":"x"}"#, 400, "/op"), (#"{"op":1,"id":"x"}"#, 400, "/op"),
        (#"{"op":"ping","id":"x","more":1}"#, 400, "/more"),
        (#"{"op":"subscribe","id":"x"}"#, 400, "/event"),
        (#"{"op":"subscribe","id":"x","event":"rumour"}"#, 400, "/event"),
        (#"{"op":"subscribe","id":"x","event":"channel"}"#, 400, "/channelId"),
        (#"{"op":"subscribe","id":"x","event":"channel","channelId":"a/b"}"#, 400, "/channelId"),
        (#"{"op":"subscribe","id":"x","event":"channel","channelId":"c","colour":1}"#, 400, "/colour"),
        (#"{"op":"subscribe","id":"x","event":"channel","channelId":"c","objectType":"t"}"#, 400, "/objectType"),
        (#"{"op":"subscribe","id":"x","event":"deadvertise","topic":"t"}"#, 400, "/topic"),
        (#"{"op":"subscribe","id":"x","event":"update","objectType":"t","snapshot":true}"#, 400, "/snapshot"),
        (#"{"op":"subscribe","id":"x","event":"advertise"}"#, 400, "/coreType"),
        (#"{"op":"subscribe","id":"x","event":"advertise","coreType":"Task","objectType":"t"}"#, 400, "/objectType"),
        (#"{"op":"subscribe","id":"x","event":"advertise","snapshot":"true"}"#, 400, "/snapshot"),
        (#"{"op":"subscribe","id":"x","event":"raw"}"#, 400, "/topic"),
        (#"{"op":"subscribe","id":"x","event":"channel","channelId":"c","filter":"name"}"#, 400, "/filter"),
        (#"{"op":"subscribe","id":"x","event":"channel","channelId":"c","filter":{"nor":[]}}"#, 400, "/filter"),
        (#"{"op":"subscribe","id":"x","event":"channel","channelId":"c","filter":["a"]}"#, 400, "/filter"),
        (#"{"op":"subscribe","id":"x","event":"channel","channelId":"c","fields":"name"}"#, 400, "/fields"),
        (#"{"op":"subscribe","id":"x","event":"channel","channelId":"c","fields":[]}"#, 400, "/fields"),
        (#"{"op":"subscribe","id":"x","event":"channel","channelId":"c","throttle":0}"#, 400, "/throttle"),
        (#"{"op":"subscribe","id":"x","event":"channel","channelId":"c","throttle":1.5}"#, 400, "/throttle"),
        (#"{"op":"subscribe","id":"x","event":"channel","channelId":"c","buffer":4097}"#, 400, "/buffer"),
        (#"{"op":"subscribe","id":"x","event":"channel","channelId":"c","buffer":"9"}"#, 400, "/buffer"),
        (#"{"op":"subscribe","id":"x","event":"channel","channelId":"c","overflow":"drop"}"#, 400, "/overflow"),
        (#"{"op":"subscribe","id":"x","event":"channel","channelId":"c","encoding":"hex"}"#, 400, "/encoding"),
        (#"{"op":"subscribe","id":"x","event":"channel","channelId":"c","since":1}"#, 400, "/since"),
        (#"{"op":"subscribe","id":"x","event":"routing","contextId":"c","since":"0-1"}"#, 400, "/since"),
        (#"{"op":"unsubscribe"}"#, 400, "/id"), (#"{"op":"unsubscribe","id":"s","event":"channel"}"#, 400, "/event"),
        (#"{"op":"publish","id":"x"}"#, 400, "/event"),
        (#"{"op":"publish","id":"x","event":"call","data":{}}"#, 400, "/event"),
        (#"{"op":"publish","id":"x","event":"advertise"}"#, 400, "/data"),
        (#"{"op":"publish","id":"x","event":"advertise","data":[]}"#, 400, "/data"),
        (
            #"{"op":"publish","id":"x","event":"advertise","data":{"object":\#(object)},"channelId":"c"}"#, 400,
            "/channelId"
        ),
        (#"{"op":"publish","id":"x","event":"channel","data":{"object":\#(object)}}"#, 400, "/channelId"),
        (#"{"op":"publish","id":"x","event":"raw","topic":"t","data":"text"}"#, 400, "/data"),
        (
            #"{"op":"publish","id":"x","event":"raw","topic":"t","data":{"encoding":"hex","value":""}}"#, 400,
            "/data/encoding"
        ),
        (
            #"{"op":"publish","id":"x","event":"raw","topic":"t","retain":1,"data":{"encoding":"utf8","value":""}}"#,
            400, "/retain"
        ),
        (#"{"op":"publish","id":"x","event":"raw","topic":"","data":{"encoding":"utf8","value":""}}"#, 400, "/topic"),
        (#"{"op":"request","id":"x"}"#, 400, "/event"),
        (#"{"op":"request","id":"x","event":"advertise","data":{}}"#, 400, "/event"),
        (#"{"op":"request","id":"x","event":"call","data":{}}"#, 400, "/operation"),
        (#"{"op":"request","id":"x","event":"query","operation":"o","data":{"objectTypes":["t"]}}"#, 400, "/operation"),
        (#"{"op":"request","id":"x","event":"discover","data":{"objectTypes":["t"]},"limit":-1}"#, 400, "/limit"),
        (#"{"op":"request","id":"x","event":"discover","data":{"objectTypes":["t"]},"timeout":0}"#, 400, "/timeout"),
        (#"{"op":"request","id":"x","event":"discover","data":{"objectTypes":["t"]},"until":true}"#, 400, "/until"),
        (#"{"op":"request","id":"x","event":"discover"}"#, 400, "/data"),
        (#"{"op":"cancel","id":"r","reason":"enough"}"#, 400, "/reason"),
        (#"{"op":"respond","id":"x","event":"resolve","data":{}}"#, 400, "/correlationId"),
        (#"{"op":"respond","id":"x","correlationId":"c","data":{}}"#, 400, "/event"),
        (#"{"op":"respond","id":"x","event":"advertise","correlationId":"c","data":{}}"#, 400, "/event"),
        (#"{"op":"respond","id":"x","event":"resolve","correlationId":"c"}"#, 400, "/data"),
        (#"{"op":"identify","id":"x"}"#, 400, "/name"), (#"{"op":"identify","id":"x","name":""}"#, 400, "/name"),
        (#"{"op":"identify","id":"x","name":1}"#, 400, "/name"),
    ]

    /// Valid texts that the gateway refuses, because a schema knows neither the open subscriptions nor the objects in
    /// the network.
    private static let refused: [(String, Int, String?)] = [
        (#"{"op":"subscribe","id":"s","event":"deadvertise"}"#, 409, nil),
        (#"{"op":"unsubscribe","id":"x"}"#, 404, nil), (#"{"op":"cancel","id":"s"}"#, 404, nil),
        (#"{"op":"subscribe","id":"x","event":"advertise","coreType":"Chair"}"#, 400, "/coreType"),
        (#"{"op":"subscribe","id":"x","event":"raw","topic":"coaty/#"}"#, 400, "/topic"),
        (#"{"op":"subscribe","id":"x","event":"raw","topic":"a#"}"#, 400, "/topic"),
        (#"{"op":"subscribe","id":"x","event":"iovalue","ioActorId":"\#(UUID().uuidString)"}"#, 404, nil),
        (#"{"op":"subscribe","id":"x","event":"iostate","ioPointId":"\#(UUID().uuidString)"}"#, 404, nil),
        (#"{"op":"subscribe","id":"x","event":"routing","contextId":"none"}"#, 404, nil),
        (#"{"op":"subscribe","id":"x","event":"channel","channelId":"c","since":"now"}"#, 400, "/since"),
        (
            #"{"op":"subscribe","id":"x","event":"channel","channelId":"c","filter":["a",["Sounds",1]]}"#, 400,
            "/filter/1/0"
        ),
        (#"{"op":"publish","id":"x","event":"advertise","data":{}}"#, 400, "/data/object"),
        (#"{"op":"publish","id":"x","event":"advertise","data":{"object":{}}}"#, 400, "/data/object/coreType"),
        (
            #"{"op":"publish","id":"x","event":"raw","topic":"coaty/3","data":{"encoding":"utf8","value":""}}"#, 400,
            "/topic"
        ),
        (
            #"{"op":"publish","id":"x","event":"raw","topic":"t","data":{"encoding":"base64","value":"?"}}"#, 400,
            "/data/value"
        ),
        (#"{"op":"request","id":"x","event":"discover","data":{}}"#, 400, "/data"),
        (#"{"op":"request","id":"x","event":"discover","data":{"objectTypes":[""]}}"#, 400, "/data/objectTypes/0"),
        (
            #"{"op":"request","id":"x","event":"discover","data":{"objectTypes":["t"]},"timeout":60001}"#, 400,
            "/timeout"
        ),
        (#"{"op":"respond","id":"x","event":"resolve","correlationId":"c","data":{}}"#, 404, nil),
    ]

    @Test func badFramesAreAnsweredAndAffectNothingElse() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        try client.subscribe("s", #""event":"channel","channelId":"c""#)
        let table = Self.invalid.map { ($0, true) } + Self.refused.map { ($0, false) }
        for ((text, status, pointer), isInvalid) in table {
            try client.send(text)
            let error = try client.next("an answer to \(text)") { $0.op != "event" }
            #expect(error.op == "error" && error.json["status"] as? Int == status, "\(text): \(error)")
            #expect(error["pointer"] == pointer, "\(text): \(error)")
            let json = (try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? [String: Any]
            #expect(error.id == (pointer == "/id" ? nil : json?["id"] as? String), "\(text): \(error)")
            if isInvalid { FrameLog.shared.sent(text, isValid: false) }
        }
        for text in [
            "", "{", "ping", #"{"op":"ping","id":"x"} "#.appending("x"), "\u{FEFF}{}",
        ] {
            try client.send(text)
            let error = try client.next()
            #expect(error.op == "error" && error.json["status"] as? Int == 400, "\(text): \(error)")
        }
        try scene.agent.publish("coaty/3/-/CHN:c/source", #"{"object":\#(Self.object)}"#)
        #expect(try client.next(of: "s").op == "event")
        #expect(try client.ask("ping", id: String(repeating: "é", count: 64)).op == "pong")
    }

    @Test func numberOfSubscriptionsIsLimited() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        for number in 0..<256 {
            try client.subscribe("s\(number)", #""event":"channel","channelId":"c\#(number % 3)""#)
        }
        let refused = try client.ask("subscribe", id: "x", #""event":"deadvertise""#)
        #expect(refused.op == "error" && refused.json["status"] as? Int == 429)
        #expect(refused["type"] == "urn:coaty-gateway:problem:too-many-subscriptions")
        let request = #""event":"discover","data":{"objectTypes":["t"]}"#
        #expect(try client.ask("request", id: "x", request).json["status"] as? Int == 429)
        #expect(try client.ask("unsubscribe", id: "s7").op == "ok")
        try client.subscribe("x", #""event":"deadvertise""#)
        try scene.agent.publish("coaty/3/-/CHN:c2/source", #"{"object":\#(Self.object)}"#)
        for number in stride(from: 2, to: 256, by: 3) { _ = try client.next(of: "s\(number)", "event") }
    }

    @Test func invalidMessagesCloseTheConnection() throws {
        let scene = try Scene(["--limit", "maximum-body-size=100000"])
        let witness = try scene.gateway.frameClient()
        try witness.subscribe("s", #""event":"channel","channelId":"c""#)
        let binary = try scene.gateway.frameClient()
        try binary.socket.sendBinary(Array(#"{"op":"ping","id":"x"}"#.utf8))
        #expect(try binary.closeCode() == 4504)
        let malformed = try scene.gateway.frameClient()
        try malformed.socket.sendFrame(
            opcode: 1,
            payload: Array(#"{"op":"ping","id":""#.utf8) + [0xFF] + Array(#""}"#.utf8)
        )
        #expect(try malformed.closeCode() == 1007)
        let large = try scene.gateway.frameClient()
        #expect(try large.ask("ping", id: "small").op == "pong")
        try? large.socket.sendText(String(repeating: " ", count: 100_001))
        #expect(try large.closeCode() == 1009)
        let single = try scene.gateway.frameClient("deadvertise")
        try single.send(#"{"op":"ping","id":"x"}"#)
        #expect(try single.closeCode() == 4504)
        try scene.agent.publish("coaty/3/-/CHN:c/source", #"{"object":\#(Self.object)}"#)
        #expect(try witness.next(of: "s").op == "event")
    }

    @Test func subprotocolIsNegotiated() throws {
        let scene = try Scene()
        func client(_ offered: String) throws -> WebSocketClient.Response {
            try WebSocketClient(port: scene.gateway.port)
                .shakeHands(path: "/v1/ws", headers: [("Sec-WebSocket-Protocol", offered)])
        }
        let none = try client("")
        #expect(none.status == 101 && none.headers["sec-websocket-protocol"] == nil)
        let known = try client("coaty.v1")
        #expect(known.status == 101 && known.headers["sec-websocket-protocol"] == "coaty.v1")
        let several = try client("coaty.v9, coaty.v1")
        #expect(several.status == 101 && several.headers["sec-websocket-protocol"] == "coaty.v1")
        let unknown = try client("coaty.v9")
        #expect(unknown.status == 400 && unknown.text.contains("unsupported-subprotocol"))
    }

    @Test func floodingClientThatDoesNotReadIsDisconnected() throws {
        let scene = try Scene()
        let witness = try scene.gateway.frameClient()
        try witness.subscribe("s", #""event":"channel","channelId":"c""#)
        let flooding = try scene.gateway.frameClient(receiveBuffer: 4096)
        // So many frames that the answers do not fit into the socket buffers.
        let frame = #"{"op":"ping","id":"\#(String(repeating: "i", count: 128))"}"#
        do {
            for _ in 0..<20_000 { try flooding.socket.sendText(frame) }
            #expect(try flooding.closeCode() == 4001)
        } catch WebSocketClient.Failure.socket(ECONNRESET) {
            // The connection was reset before the client had read the close frame.
        } catch WebSocketClient.Failure.socket(EPIPE) {
        }
        try scene.agent.publish("coaty/3/-/CHN:c/source", #"{"object":\#(Self.object)}"#)
        #expect(try witness.next(of: "s").op == "event")
        #expect(try witness.ask("ping").op == "pong")
    }

    @Test func brokerRefusalIsReportedAsError() throws {
        let broker = try BrokerProcess(refusing: "secret/#")
        defer { broker.stop() }
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)"])
        try gateway.untilReady()
        let client = try gateway.frameClient()
        // Subscriptions after the first are also refused, and the id is free each time.
        for _ in 0..<50 {
            let refused = try client.ask("subscribe", id: "x", #""event":"raw","topic":"secret/#""#)
            #expect(refused.op == "error" && refused.json["status"] as? Int == 403, "\(refused)")
        }
        try client.subscribe("c", #""event":"channel","channelId":"c""#)
        let single = try gateway.frameClient("raw?topic=secret/%23")
        #expect(try single.next().json["status"] as? Int == 403)
        #expect(try single.closeCode() == 4501)
        let events = try EventStreamClient(port: gateway.port, path: "/v1/sse/raw?topic=secret/%23")
        #expect(try events.next()?.name == "problem")
        #expect(try events.next()?.text == nil)
    }
}
