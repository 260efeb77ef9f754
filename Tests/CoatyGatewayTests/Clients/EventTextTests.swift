import Testing
import TestSupport

@testable import Access
@testable import Base
@testable import Coaty
@testable import CoatyTestSupport
@testable import Feeds
@testable import Network

/// Text of events and other frames.
@Suite(.exclusive, .closesOutboundQueues) struct EventTextTests {
    private func fields(_ paths: String...) -> FieldTree { FieldTree(paths.map { ObjectFilterProperty($0) }) }

    private func data(_ event: ObservedEvent, _ fields: FieldTree?) throws -> String {
        let text = frame(EventText(event: event, fields: fields)).text
        return String(decoding: try #require(try Payload(text).json["data"]).bytes, as: UTF8.self)
    }

    /// Returns the frame of a client that has no id.
    private func frame(_ text: EventText) -> OutboundFrame { OutboundFrame(queued(text), id: nil) }

    private func queued(
        _ text: EventText,
        cursor: FeedCursor? = nil,
        change: ObjectChange.Kind? = nil
    ) -> QueuedEvent {
        QueuedEvent(cursor: cursor, change: change, key: nil, request: nil, body: text.body())
    }

    private func projected(_ object: String, _ fields: FieldTree) throws -> String {
        var text: [UInt8] = []
        fields.append(try Payload(Array(object.utf8)).json, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    @Test(arguments: [
        (["name"], #"{"objectId":"o","name":"n"}"#),
        (["objectId", "name", "name"], #"{"objectId":"o","name":"n"}"#),
        (["a.b"], #"{"objectId":"o","a":{"b":{"c":1,"d":2}}}"#),
        (["a.b.c", "a.e"], #"{"objectId":"o","a":{"b":{"c":1},"e":3}}"#),
        (["a.b.c", "a"], #"{"objectId":"o","a":{"b":{"c":1,"d":2},"e":3}}"#),
        (["a", "a.b.c"], #"{"objectId":"o","a":{"b":{"c":1,"d":2},"e":3}}"#),
        (["list.x"], #"{"objectId":"o","list":[{"x":1}]}"#),
        (["none", "a.none", "name.x"], #"{"objectId":"o","a":{},"name":"n"}"#),
        ([#"q"\"#], #"{"objectId":"o","q\"\\":4}"#),
        (["e\u{301}"], #"{"objectId":"o","e\#u{301}":6}"#),
    ])
    func projectionContainsNamedFields(_ paths: [String], _ expected: String) throws {
        let object = #"""
            {"name":"n","objectId":"o","a":{"b":{"c":1,"d":2},"e":3},"list":[{"x":1}],"q\"\\":4,"\#u{e9}":5,"e\#u{301}":6}
            """#
        let tree = FieldTree(paths.map { ObjectFilterProperty($0) })
        let text = try projected(object, tree)
        #expect(Array(text.utf8) == Array(expected.utf8), "\(text)")
    }

    @Test func receiversWithEqualIdsShareAFrame() throws {
        let event = try Made.channel(#"{"object":\#(Made.object(1, 7))}"#)
        let cursor = FeedCursor(epoch: 1, position: 2)
        let item = queued(EventText(event: event), cursor: cursor, change: .added)
        let first = OutboundFrame(item, id: "a").webSocketFrame
        #expect(OutboundFrame(item, id: "a").webSocketFrame === first)
        var others = [item, item, item]
        others[0].cursor = cursor.next
        others[1].change = .changed
        others[2].cursor = nil
        for (other, id) in others.map({ ($0, "a") }) + [(item, "b"), (item, nil)] {
            let frame = OutboundFrame(other, id: id)
            #expect(frame.webSocketFrame !== first)
            #expect(frame.webSocketFrame.count == frame.text.count)
        }
        #expect(first.count == OutboundFrame(item, id: "a").text.count)
    }

    @Test func eventStreamFramesHaveTheValuesOfTheirReceivers() throws {
        let cursor = FeedCursor(epoch: 1, position: 2)
        let item = queued(EventText(event: try Made.event(1, 7)), cursor: cursor, change: .added)
        var others = [item, item, item]
        others[0].cursor = cursor.next
        others[1].change = .changed
        others[2].cursor = nil
        // The first frame is kept for receivers with equal values.
        for (item, id) in [(item, "a"), (item, "a")] + others.map({ ($0, "a") }) + [(item, "b"), (item, nil)] {
            let frame = OutboundFrame(item, id: id)
            let start = item.cursor.map { "id: \($0)\n" } ?? ""
            let expected = Array("\(start)event: event\ndata: ".utf8) + frame.text + Array("\n\n".utf8)
            #expect(Array(frame.eventStreamFrame.joined()) == expected)
        }
    }

    @Test func projectionOmitsPrivateData() throws {
        let one = try Made.channel(#"{"object":\#(Made.object(1, 7)),"privateData":{"secret":1}}"#)
        #expect(try data(one, fields("n")) == #"{"object":{"objectId":"\#(Made.objectId(1))","n":7}}"#)
        #expect(try data(one, nil).contains("secret"))
        let two = try Made.channel(#"{"objects":[\#(Made.object(1, 7)),\#(Made.object(2, 8))],"privateData":{}}"#)
        let objects = #"{"objectId":"\#(Made.objectId(1))","n":7},{"objectId":"\#(Made.objectId(2))","n":8}"#
        #expect(try data(two, fields("n")) == #"{"objects":[\#(objects)]}"#)
        let none = try Made.channel(#"{"objects":[]}"#)
        #expect(try data(none, fields("n")) == #"{"objects":[]}"#)
    }

    @Test func dataWithoutObjectIsProjectedAsWhole() throws {
        let payload = try Payload(Array(#"{"value":{"a":1,"b":2}}"#.utf8))
        let event = ObservedEvent("iovalue", "ioActorId", CoatyUUID(), data: payload)
        #expect(try data(event, fields("value.b")) == #"{"value":{"b":2}}"#)
        let number = ObservedEvent("iovalue", "ioActorId", CoatyUUID(), data: try Payload(Array("7".utf8)))
        #expect(try data(number, fields("value")) == "7")
    }

    /// Traffic events are not validated: `object` and `objects` may hold any value.
    @Test(arguments: [
        (#"{"object":{"n":1,"m":2}}"#, #"{"object":{"n":1}}"#, true),
        (#"{"objects":[{"n":1,"m":2},3]}"#, #"{"objects":[{"n":1},3]}"#, true),
        (#"{"object":3,"objects":[{"n":1,"m":2}]}"#, #"{"objects":[{"n":1}]}"#, true),
        (#"{"object":3,"n":1,"m":2}"#, #"{"n":1}"#, true), (#"{"objects":3,"n":1}"#, #"{"n":1}"#, true),
        (#"{"objects":{"n":1},"m":2}"#, "{}", false), (#"{"objects":[]}"#, #"{"objects":[]}"#, false),
    ])
    func invalidObjectsAreNotProjectedAsObjects(_ payload: String, _ projection: String, _ matches: Bool) throws {
        let bytes = Array(payload.utf8)
        let topic = "coaty/3/-/RTN/s/c"
        let event = ObservedEvent(
            TrafficEvent(
                label: topic,
                address: try #require(EventAddress(topic: topic)),
                bytes: bytes,
                payload: try Payload(bytes)
            ),
            .named(.call, .anyOperation)
        )
        #expect(try data(event, fields("n")) == projection)
        let outbound = OutboundQueue(SteeredTransport())
        let subscription = outbound.open(
            id: nil,
            options: try Made.options { $0.filter = try Made.condition(#"["n",["Equals",1]]"#) }
        )
        #expect((subscription.item(EventRecord(.event(event), cursor: nil)) != nil) == matches)
    }

    @Test func eventFrameContainsSourceAndCursor() throws {
        let event = try Made.change(.added, 1, 3)
        let cursor = FeedCursor(epoch: 36, position: 5)
        let queued = queued(EventText(event: event), cursor: cursor, change: .changed)
        let text = OutboundFrame(queued, id: "a\"\n").text
        let expected =
            #"{"op":"event","id":"a\"\u000a","change":"changed","cursor":"\#(cursor)","#
            + #""event":"advertise","sourceId":"owner","since":0,"changed":0,"data":{"object":\#(Made.object(1, 3))}}"#
        #expect(String(decoding: text, as: UTF8.self) == expected)
    }

    @Test func octetsAreSentInTextOrAfterIt() throws {
        let event = ObservedEvent(try RawEvent.with(topic: "t\"", payload: [0, 0xFF, 0x0A]))
        let inline = frame(EventText(event: event))
        #expect(
            String(decoding: inline.text, as: UTF8.self)
                == #"{"op":"event","event":"raw","topic":"t\"","data":{"encoding":"base64","value":"AP8K"}}"#
        )
        #expect(inline.body?.isBinary == false)
        let attached = frame(EventText(event: event, encoding: .binary))
        let text = #"{"op":"event","event":"raw","topic":"t\"","data":{"encoding":"binary"}}"#
        #expect(attached.text == Array(text.utf8) + [0x0A, 0, 0xFF, 0x0A])
        #expect(attached.body?.isBinary == true)
        // JSON data is never sent as octets.
        let json = frame(EventText(event: try Made.event(1, 1), encoding: .binary))
        #expect(json.body?.isBinary == false)
        #expect(json.text == frame(EventText(event: try Made.event(1, 1))).text)
    }

    @Test func canonicallyEquivalentTopicsHaveDifferentKeys() throws {
        let keys = try ["\u{e9}", "e\u{301}"].map { ObservedEvent(try RawEvent.with(topic: $0, payload: "")).key }
        #expect(keys[0] != keys[1])
    }

    @Test(arguments: [
        "", "-", "1", "1-", "-1", "1-2-3", "1--2", "x y-1", "1-a", "1- 2", "1-18446744073709551616", "é-1",
        "zzzzzzzzzzzzzzzz-1", "0000000000000000000000000000000000000000-1",
    ])
    func malformedCursorsAreRejected(_ text: String) { #expect(FeedCursor(text) == nil) }

    @Test(arguments: [UInt64.min, 1, 35, 36, .max], [UInt64.min, 1, .max])
    func cursorsRoundTrip(_ epoch: UInt64, _ position: UInt64) {
        let cursor = FeedCursor(epoch: epoch, position: position)
        #expect(FeedCursor(cursor.description) == cursor)
    }

    /// A client must not learn from two cursors how many events were hidden between them.
    @Test func cursorsDoNotShowTheNumberOfEvents() throws {
        let positions = (0..<1000).map { FeedCursor(epoch: 7, position: $0).description.split(separator: "-")[1] }
        #expect(Set(positions).count == 1000)
        let numbers = try positions.map { try #require(UInt64($0)) }
        let ascending = zip(numbers, numbers.dropFirst()).count { $0 < $1 }
        #expect((400...600).contains(ascending))
    }

    @Test func framesAreEncodedAsJSON() throws {
        let frames: [(ServerFrame, String)] = [
            (.ok, #"{"op":"ok","id":"i"}"#), (.gap(dropped: 3), #"{"op":"gap","id":"i","dropped":3}"#),
            (.gap(dropped: nil), #"{"op":"gap","id":"i","dropped":null}"#),
            (.done(.overflow), #"{"op":"done","id":"i","reason":"overflow"}"#),
        ]
        for (frame, expected) in frames {
            #expect(String(decoding: OutboundFrame(frame, id: "i").text, as: UTF8.self) == expected)
        }
        #expect(String(decoding: OutboundFrame(.pong, id: nil).text, as: UTF8.self) == #"{"op":"pong"}"#)
        let error = try Payload(OutboundFrame(.error(Problems.subscriptionRefused), id: "i").text).json
        #expect(error["status"]?.number == 403)
    }

    @Test func lineBreaksAreReplacedBySpaces() {
        let line = JSONText.line(Array("{\r\n\"a\" :\n1}".utf8))
        #expect(String(decoding: line, as: UTF8.self) == "{  \"a\" : 1}")
    }
}
