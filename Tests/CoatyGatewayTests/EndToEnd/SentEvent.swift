import Foundation
import TestSupport

/// An event of each kind, as published by agents.
struct SentEvent {
    let event: String
    let topic: String
    let payload: String
    /// The members of the frame besides the common ones.
    let members: [String: String]
    /// The data; nil if it is the payload.
    var data: String?

    private static let job = Scene.job("j")

    static let all = [
        SentEvent(event: "advertise", topic: "ADV:Task/s", payload: #"{"object":\#(job)}"#, members: ["sourceId": "s"]),
        SentEvent(event: "deadvertise", topic: "DAD/s", payload: #"{"objectIds":["x"]}"#, members: ["sourceId": "s"]),
        SentEvent(
            event: "channel",
            topic: "CHN:news/s",
            payload: #"{"objects":[]}"#,
            members: ["sourceId": "s", "channelId": "news"]
        ),
        SentEvent(
            event: "associate",
            topic: "ASC:Room/s",
            payload: #"{"ioSourceId":"a","ioActorId":"b"}"#,
            members: ["sourceId": "s", "contextName": "Room"]
        ),
        SentEvent(
            event: "iovalue",
            topic: "IOV/point",
            payload: "21.50",
            members: ["ioSourceId": "point"],
            data: #"{"value":21.50}"#
        ),
        SentEvent(
            event: "discover",
            topic: "DSC/s/c1",
            payload: #"{"objectTypes":["none"]}"#,
            members: ["sourceId": "s", "correlationId": "c1"]
        ),
        SentEvent(
            event: "resolve",
            topic: "RSV/t/c1",
            payload: #"{"object":\#(job)}"#,
            members: ["sourceId": "t", "correlationId": "c1"]
        ),
        SentEvent(
            event: "query",
            topic: "QRY/s/c2",
            payload: #"{"coreTypes":["Task"]}"#,
            members: ["sourceId": "s", "correlationId": "c2"]
        ),
        SentEvent(
            event: "retrieve",
            topic: "RTV/t/c2",
            payload: #"{"objects":[\#(job)]}"#,
            members: ["sourceId": "t", "correlationId": "c2"]
        ),
        SentEvent(
            event: "update",
            topic: "UPD:Task/s/c3",
            payload: #"{"object":\#(job)}"#,
            members: ["sourceId": "s", "correlationId": "c3"]
        ),
        SentEvent(
            event: "complete",
            topic: "CPL/t/c3",
            payload: #"{"object":\#(job)}"#,
            members: ["sourceId": "t", "correlationId": "c3"]
        ),
        SentEvent(
            event: "call",
            topic: "CLL:com.example.add/s/c4",
            payload: #"{"parameters": [ 1,2]}"#,
            members: ["sourceId": "s", "correlationId": "c4", "operation": "com.example.add"]
        ),
        SentEvent(
            event: "return",
            topic: "RTN/t/c4",
            payload: #"{"result":3}"#,
            members: ["sourceId": "t", "correlationId": "c4"]
        ),
    ]
}

extension Scene {
    /// Publishes one event of each kind.
    func publishAll() throws {
        for sent in SentEvent.all { try agent.publish("coaty/3/-/" + sent.topic, sent.payload) }
    }

    /// Publishes a marker after which all earlier events have been delivered.
    func publishEnd() throws { try agent.publish("coaty/3/-/DAD/end", #"{"objectIds":["end"]}"#) }
}

extension FrameClient {
    /// Returns the events of a subscription up to the marker.
    func events(of id: String) throws -> [Frame] {
        var events: [Frame] = []
        while true {
            let frame = try next(of: id)
            if frame["sourceId"] == "end" { return events }
            events.append(frame)
        }
    }
}
