import Coaty
import Testing
import TestSupport

@testable import Base
@testable import Edge
@testable import Feeds
@testable import Network

/// Parameters in queries and frames, and the errors for invalid ones.
@Suite(.exclusive) struct ClientParametersTests {
    /// Returns the location of an error: the name of a parameter, or the pointer to a member.
    private func fault(_ body: () throws -> Void) -> String? {
        do {
            try body()
            return nil
        } catch let error as InvalidParameter {
            return error.name
        } catch PayloadError.invalid(let pointer, _) {
            return pointer
        } catch {
            return "\(error)"
        }
    }

    private func query(_ items: KeyValuePairs<String, String>) -> QueryParameters {
        QueryParameters(items: items.map { (name: $0.key, value: $0.value) }, limits: Limits())
    }

    private func frame(_ text: String) throws -> FrameParameters {
        FrameParameters(frame: try Payload(Array(text.utf8)).json, limits: Limits())
    }

    // MARK: - Observations

    private static let id = "5b1c1b1e-4c4b-4d0e-9d5a-0d4f1b1c1b1e"

    @Test(arguments: [
        ("advertise", ["coreType": "Task"], Observation.advertise(.core(.Task))),
        ("advertise", ["objectType": "a.b"], .advertise(.object(WireName("a.b")))),
        ("advertise", ["snapshot": "true"], .objects(nil)),
        ("advertise", ["snapshot": "true", "coreType": "Task"], .objects(.core(.Task))),
        ("advertise", ["snapshot": "false", "coreType": "Task"], .advertise(.core(.Task))),
        ("deadvertise", [:], .deadvertise), ("discover", [:], .discover), ("query", [:], .query),
        ("channel", ["channelId": "c"], .channel(WireName("c"))),
        ("update", ["objectType": "t"], .update(.object(WireName("t")))),
        ("call", ["operation": "o"], .call(operation: WireName("o"))),
        ("associate", ["contextName": "n"], .associate(contextName: WireName("n"))),
        ("raw", ["topic": "a/+/#"], .raw(WireName("a/+/#"))),
        ("iovalue", ["ioActorId": id], .ioValue(actor: CoatyUUID(wire: id))),
        ("iostate", ["ioPointId": id], .ioState(point: CoatyUUID(wire: id))),
        ("routing", ["contextId": "any id"], .routing(context: CoatyUUID(wire: "any id"))),
        ("traffic", [:], .traffic(Set(CommunicationEventType.allCases))),
        ("traffic", ["events": "call"], .traffic([.call])),
        ("traffic", ["events": "iovalue,return,advertise,return"], .traffic([.ioValue, .return, .advertise])),
    ])
    func requestIsReadFromQueryAndFrame(_ event: String, _ items: [String: String], _ expected: Observation) throws {
        let query = QueryParameters(items: items.map { (name: $0.key, value: $0.value) }, limits: Limits())
        #expect(try Observation(event: event, query) == expected)
        var text: [UInt8] = []
        for (name, value) in items {
            text += text.isEmpty ? "{".utf8 : ",".utf8
            JSONText.append(name, to: &text)
            text.append(UInt8(ascii: ":"))
            switch name {
            case "snapshot": text += value.utf8
            case "events": text += "\(value.split(separator: ",").map(String.init))".utf8
            default: JSONText.append(value, to: &text)
            }
        }
        let frame = FrameParameters(
            frame: try Payload(text.isEmpty ? Array("{}".utf8) : text + "}".utf8).json,
            limits: Limits()
        )
        #expect(try Observation(event: event, frame) == expected)
        #expect(expected.pattern.rawValue == event)
        #expect(Observation.parameters[expected.pattern]?.isSuperset(of: items.keys) == true)
    }

    @Test func unknownEventHasNoObservation() throws {
        for event in ["", "Advertise", "resolve", "objects"] {
            #expect(try Observation(event: event, query([:])) == nil)
        }
    }

    @Test(arguments: [
        ("advertise", "{}", "coreType"), ("advertise", #"{"coreType":"T"}"#, "coreType"),
        ("advertise", #"{"coreType":"Task","objectType":"t"}"#, "objectType"),
        ("advertise", #"{"objectType":"a/b"}"#, "objectType"), ("advertise", #"{"objectType":""}"#, "objectType"),
        ("advertise", #"{"snapshot":"yes"}"#, "snapshot"), ("channel", "{}", "channelId"),
        ("channel", #"{"channelId":"+"}"#, "channelId"), ("update", "{}", "coreType"), ("call", "{}", "operation"),
        ("call", ##"{"operation":"#"}"##, "operation"), ("associate", "{}", "contextName"), ("raw", "{}", "topic"),
        ("raw", ##"{"topic":"coaty/#"}"##, "topic"), ("raw", ##"{"topic":"a#"}"##, "topic"),
        ("iovalue", "{}", "ioActorId"), ("iovalue", #"{"ioActorId":"x"}"#, "ioActorId"),
        ("iostate", #"{"ioPointId":""}"#, "ioPointId"), ("routing", "{}", "contextId"),
        ("traffic", #"{"events":[]}"#, "events"), ("traffic", #"{"events":["raw"]}"#, "events"),
        ("traffic", #"{"events":["call",""]}"#, "events"),
    ])
    func faultNamesTheParameter(_ event: String, _ text: String, _ name: String) throws {
        let frame = try frame(text)
        #expect(fault { _ = try Observation(event: event, frame) } == "/" + name)
        let items = frame.frame.members.map { (name: $0.key.string ?? "", value: $0.value.string ?? "") }
        #expect(fault { _ = try Observation(event: event, QueryParameters(items: items, limits: Limits())) } == name)
    }

    @Test func valuesOfTheWrongKindAreRefused() throws {
        for (event, text, pointer) in [
            ("channel", #"{"channelId":1}"#, "/channelId"), ("advertise", #"{"snapshot":1}"#, "/snapshot"),
            ("raw", #"{"topic":null}"#, "/topic"), ("traffic", #"{"events":"call"}"#, "/events"),
            ("traffic", #"{"events":["call",1]}"#, "/events/1"),
        ] {
            let frame = try frame(text)
            #expect(fault { _ = try Observation(event: event, frame) } == pointer)
        }
        let twice = query(["channelId": "a", "channelId": "b"])
        #expect(fault { _ = try Observation(event: "channel", twice) } == "channelId")
    }

    // MARK: - Options

    private static let channel = Observation.channel(WireName("c"))

    @Test func optionsHaveDefaults() throws {
        let options = try SubscriptionOptions(query([:]), of: Self.channel)
        #expect(options.filter == nil && options.fields == nil && options.throttle == nil && options.since == nil)
        #expect(options.buffer == 256 && options.overflow == .dropOldest && options.encoding == .base64)
    }

    @Test func optionsAreReadFromQueryAndFrame() throws {
        let query = query([
            "filter": #"["n",["Equals",1]]"#, "fields": "name,a.b", "throttle": "250", "buffer": "4096",
            "overflow": "latest", "since": FeedCursor(epoch: 10, position: 7).description, "encoding": "binary",
        ])
        let frame = try frame(
            #"{"filter":["n",["Equals",1]],"fields":["name",["a","b"]],"throttle":250,"buffer":4096,"overflow":"latest","#
                + #""since":"\#(FeedCursor(epoch: 10, position: 7))","encoding":"binary"}"#
        )
        for options in [
            try SubscriptionOptions(query, of: Self.channel), try SubscriptionOptions(frame, of: Self.channel),
        ] {
            #expect(options.filter?.holds(forOneOf: [try Payload(Array(#"{"n":1}"#.utf8)).json]) == true)
            #expect(options.filter?.holds(forOneOf: [try Payload(Array(#"{"n":2}"#.utf8)).json]) == false)
            var text: [UInt8] = []
            options.fields?.append(try Payload(Array(#"{"a":{"b":1,"c":2},"name":3,"d":4}"#.utf8)).json, to: &text)
            #expect(String(decoding: text, as: UTF8.self) == #"{"name":3,"a":{"b":1}}"#)
            #expect(options.throttle?.interval == .milliseconds(250))
            #expect(options.buffer == 4096 && options.overflow == .latest && options.encoding == .binary)
            #expect(options.since == .plain(FeedCursor(epoch: 10, position: 7)))
        }
    }

    @Test(arguments: [
        ("filter", #""x""#), ("filter", "[]"), ("filter", #"["n",["Nonsense",1]]"#), ("fields", ""), ("fields", "a..b"),
        ("fields", ",a"), ("fields", String(repeating: "a.", count: FieldTree.maximumDepth) + "a"),
        ("fields", String(repeating: "a,", count: Limits().fields) + "a"), ("throttle", "0"),
        ("throttle", "3600001"), ("throttle", "x"), ("throttle", "1.5"), ("buffer", "0"), ("buffer", "4097"),
        ("buffer", "-1"), ("buffer", "+1"), ("overflow", "drop"), ("overflow", ""), ("since", ""), ("since", "garbage"),
        ("encoding", "hex"), ("filter", "{"),
    ])
    func invalidQueryOptionIsNamed(_ name: String, _ value: String) {
        let query = QueryParameters(items: [(name: name, value: value)], limits: Limits())
        #expect(fault { _ = try SubscriptionOptions(query, of: Self.channel) } == name)
    }

    @Test(arguments: [
        ("2s", 2000), ("500ms", 500), ("500", 500), ("007s", 7000), ("3600s", 3_600_000), ("3600000ms", 3_600_000),
        ("3601s", nil), ("0ms", nil), ("", nil), ("s", nil), ("2 s", nil), ("-2s", nil), ("+2s", nil), ("2.5s", nil),
        ("2m", nil), ("2S", nil), ("9223372036854775807s", nil), ("9223372036854775808", nil), ("2٣s", nil),
    ])
    func durationsHaveUnits(_ text: String, _ milliseconds: Int?) throws {
        let range = 1...SubscriptionOptions.maximumThrottle
        #expect((try? query(["throttle": text]).milliseconds("throttle", in: range)) == milliseconds)
        // In JSON, a duration without a unit is a number.
        let isPlain = text.allSatisfy(\.isNumber)
        let frame = try frame(#"{"throttle":"\#(text)"}"#)
        #expect((try? frame.milliseconds("throttle", in: range)) == (isPlain ? nil : milliseconds))
    }

    @Test(arguments: [
        (#"{"filter":"x"}"#, "/filter"), (#"{"filter":["n",["Nonsense",1]]}"#, "/filter/1/0"),
        (#"{"fields":"name"}"#, "/fields"), (#"{"fields":[]}"#, "/fields"), (#"{"fields":["a",7]}"#, "/fields/1"),
        (#"{"throttle":"250"}"#, "/throttle"), (#"{"throttle":1e300}"#, "/throttle"), (#"{"buffer":1.5}"#, "/buffer"),
        (#"{"buffer":4097}"#, "/buffer"), (#"{"overflow":1}"#, "/overflow"), (#"{"since":7}"#, "/since"),
        (#"{"encoding":null}"#, "/encoding"),
    ])
    func invalidFrameOptionHasAPointer(_ text: String, _ pointer: String) throws {
        let frame = try frame(text)
        #expect(fault { _ = try SubscriptionOptions(frame, of: Self.channel) } == pointer)
    }

    /// The cost of conditions is bounded: the number of properties, and the steps that one event takes.
    @Test func conditionsAreBounded() throws {
        func filter(_ count: Int) -> String {
            let conditions = Array(repeating: #"["n",["Equals",1]]"#, count: count).joined(separator: ",")
            return #"{"and":[{"not":{"or":[["n",["Equals",2]]]}},\#(conditions)]}"#
        }
        let limit = Limits().filterProperties
        for (count, isRefused) in [(limit - 1, false), (limit, true), (limit + 50, true)] {
            let query = query(["filter": filter(count)])
            #expect(fault { _ = try SubscriptionOptions(query, of: Self.channel) } == (isRefused ? "filter" : nil))
            let frame = try frame(#"{"filter":\#(filter(count))}"#)
            #expect(fault { _ = try SubscriptionOptions(frame, of: Self.channel) } == (isRefused ? "/filter" : nil))
        }
        // Empty conditions count, too.
        let empty = Array(repeating: #"{"and":[]}"#, count: limit + 1).joined(separator: ",")
        let frame = try frame(#"{"filter":{"or":[\#(empty)]}}"#)
        #expect(fault { _ = try SubscriptionOptions(frame, of: Self.channel) } == "/filter")
    }

    @Test func conditionBeyondTheStepLimitDoesNotHold() throws {
        let text = #"{"or":[["n",["Equals",1]],["n",["Equals",0]]]}"#
        let opposite = try Made.condition(#"{"not":\#(text)}"#)
        let condition = try Made.condition(text)
        func objects(_ count: Int) throws -> [JSONView] {
            let one = try Payload(Array(#"{"n":2}"#.utf8)).json
            let last = try Payload(Array(#"{"n":1}"#.utf8)).json
            return Array(repeating: one, count: count) + [last]
        }
        #expect(condition.holds(forOneOf: try objects(10)))
        #expect(opposite.holds(forOneOf: try objects(10)))
        #expect(!condition.holds(forOneOf: try objects(Limits().filterSteps)))
        let like = try Made.condition(#"{"not":["s",["Like","%b"]]}"#)
        let long = #"{"s":"\#(String(repeating: "a", count: 32 * Limits().filterSteps))"}"#
        #expect(like.holds(forOneOf: [try Payload(Array(#"{"s":"aaa"}"#.utf8)).json]))
        #expect(!like.holds(forOneOf: [try Payload(Array(long.utf8)).json]))
    }

    @Test func optionsThatDoNotApplyAreRefused() throws {
        let all = query(["filter": #"["n",["Equals",1]]"#])
        #expect(fault { _ = try SubscriptionOptions(all, of: .raw(WireName("t"))) } == "filter")
        #expect(fault { _ = try SubscriptionOptions(query(["fields": "a"]), of: .raw(WireName("t"))) } == "fields")
        let single = [
            Observation.deadvertise, .discover, .query, .call(operation: WireName("o")), .traffic([.call]),
        ]
        for request in single {
            #expect(fault { _ = try SubscriptionOptions(query(["throttle": "1"]), of: request) } == "throttle")
        }
        for request in [Observation.ioState(point: .init()), .routing(context: .init())] {
            #expect(fault { _ = try SubscriptionOptions(query(["since": "a-1"]), of: request) } == "since")
        }
    }

    // MARK: - Frames of clients

    private func client(_ text: String) -> (fault: String?, id: String?) {
        var id: String?
        let fault = fault { _ = try ClientFrame(Array(text.utf8), id: &id) }
        return (fault, id)
    }

    @Test func aFrameHasAnOpAndAnId() throws {
        var id: String?
        let frame = try ClientFrame(Array(#"{"op":"ping","id":"é","x":1}"#.utf8), id: &id)
        #expect(frame.op == .ping && frame.id == "é" && id == "é")
        let long = String(repeating: "i", count: SocketSession.maximumIdLength)
        #expect(client(#"{"op":"ping","id":"\#(long)"}"#).fault == nil)
    }

    @Test func frameFaultsAreReportedByIdIfPresent() {
        let long = String(repeating: "i", count: SocketSession.maximumIdLength + 1)
        for (text, fault) in [
            ("[]", ""), (#"{"op":"ping"}"#, "/id"), (#"{"op":"ping","id":""}"#, "/id"),
            (#"{"op":"ping","id":7}"#, "/id"),
            (#"{"op":"ping","id":"\#(long)"}"#, "/id"),
        ] {
            #expect(client(text).fault == fault)
            #expect(client(text).id == nil)
        }
        for text in [#"{"id":"i"}"#, #"{"id":"i","op":"dance"}"#, #"{"id":"i","op":7}"#] {
            #expect(client(text).fault == "/op")
            #expect(client(text).id == "i")
        }
        #expect(client("{").fault != nil)
        #expect(client("").fault != nil)
    }

    @Test func payloadFaultHasAPointerIntoTheFrame() throws {
        var id: String?
        let text = #"{"op":"publish","id":"i","data":{"object":{"objectId":7}}}"#
        let frame = try ClientFrame(Array(text.utf8), id: &id)
        let fault = fault { _ = try frame.json.data { try AdvertiseEvent(payload: $0) } }
        #expect(fault?.hasPrefix("/data/object/") == true)
        let bare = try ClientFrame(Array(#"{"op":"publish","id":"i"}"#.utf8), id: &id)
        #expect(self.fault { _ = try bare.json.data { try AdvertiseEvent(payload: $0) } } == "/data")
    }

    @Test func leavesAreCounted() {
        let leaf = ObjectFilterCondition.property("a", .exists())
        #expect(leaf.leafCount == 1)
        #expect(ObjectFilterCondition.and([leaf, .not(.or([leaf, leaf])), .or([])]).leafCount == 4)
    }
}

extension ClientCondition {
    /// Returns whether the condition certainly matches at least one of the objects of an event.
    fileprivate func holds(forOneOf objects: [JSONView]) -> Bool {
        evaluate { (budget) throws(WorkExceeded) in try condition.holds(forOneOf: objects, &budget) }.result ?? false
    }
}
