import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Doubtful arguments that the reference refuses. Here, they are refused, too: by an error or, if Swift's types do not
/// allow the argument, in the equivalent payload.
@Suite(.exclusive) struct GoldenThrowsTests {
    private struct Line: Decodable {
        let note: String
        let `throws`: Bool
    }

    @Test func refusesTheSameInputAsTheReference() throws {
        let lines = try Golden.lines("throws.jsonl", as: Line.self)
        #expect(lines.count == 32)
        for line in lines {
            // The reference fails with a null reference, which is not a deliberate refusal.
            let isRefused = line.throws && !line.note.hasPrefix("query without objectFilter")
            do {
                try call(line.note)
                #expect(!isRefused, "\(line.note)")
            } catch is PayloadError {
                #expect(isRefused, "\(line.note)")
            } catch is CommunicationError {
                #expect(isRefused, "\(line.note)")
            }
        }
    }

    private func payload(_ text: String) throws -> Payload { try Payload(Array(text.utf8)) }

    private func advertise(_ objectType: String, rest: String = "", behind: String = "") throws {
        let object = #"{"name":"n","coreType":"CoatyObject","objectType":"\#(objectType)","objectId":"i"\#(rest)}"#
        _ = try AdvertiseEvent(payload: payload(#"{"object":\#(object)\#(behind)}"#))
    }

    private func call(_ note: String) throws {
        let ioSource = { (isRaw: Bool) in IoSource(valueType: "v", useRawIoValues: isRaw, name: "S") }
        switch note {
        case "advertise objectType with /": try advertise("a/b")
        case "advertise objectType with +": try advertise("a+b")
        case "advertise objectType with #": try advertise("a#b")
        case "advertise objectType empty": try advertise("")
        case "advertise objectType with space/colon": try advertise("com.example:T y-p")
        case "advertise privateData null": try advertise("a", behind: #","privateData":null"#)
        case "advertise privateData array": try advertise("a", behind: #","privateData":[]"#)
        case "advertise object with parentObjectId null": try advertise("a", rest: #","parentObjectId":null"#)
        case "advertise unknown coreType": try advertise("a", rest: #","coreType":"Foo""#)
        case "channel id with /": _ = try ChannelEvent.with(objects: [], channelId: "a/b")
        case "call operation empty": _ = try CallEvent.with(operation: "")
        case "call parameters string": _ = try CallEvent(operation: "o", payload: payload(#"{"parameters":"x"}"#))
        case "call parameters null": _ = try CallEvent(operation: "o", payload: payload(#"{"parameters":null}"#))
        case "return withResult(undefined)": _ = try ReturnEvent(payload: payload("{}"))
        case "discover objectId + objectTypes":
            _ = try DiscoverEvent(payload: payload(#"{"objectId":"x","objectTypes":["a"]}"#))
        case "discover nothing": _ = try DiscoverEvent(payload: payload("{}"))
        case "discover externalId + objectTypes + coreTypes":
            _ = try DiscoverEvent(payload: payload(#"{"externalId":"x","objectTypes":["a"],"coreTypes":["Task"]}"#))
        case "discover unknown core type": _ = try DiscoverEvent(payload: payload(#"{"coreTypes":["Foo"]}"#))
        case "discover empty objectTypes": _ = try DiscoverEvent.with(objectTypes: [])
        case "query without objectFilter (library bug: reads filter.skip of undefined)":
            let event = try QueryEvent(payload: payload(#"{"objectTypes":["a"]}"#))
            #expect(event.payload.json["objectFilter"]?.kind == .object)
        case "query with objectFilter {}": _ = try QueryEvent.with(objectTypes: ["a"])
        case "query both type lists":
            _ = try QueryEvent(payload: payload(#"{"objectTypes":["a"],"coreTypes":["Task"],"objectFilter":{}}"#))
        case "query and + or": try query(#"{"and":[],"or":[]}"#)
        case "query operator as string": try query(#"["a",["9"]]"#)
        case "query empty property name": try query(#"["",[9]]"#)
        case "resolve nothing": _ = try ResolveEvent(payload: payload("{}"))
        case "deadvertise empty string id": _ = try DeadvertiseEvent.with(objectIds: [CoatyUUID(wire: "")])
        case "associate with empty route":
            _ = try AssociateEvent.with(
                ioContextName: "c",
                ioSourceId: .init(),
                ioActorId: .init(),
                associatingRoute: ""
            )
        case "observeChannel with #": _ = try EventObservation<ChannelEvent>.channel("a#")
        case "observeAdvertiseWithCoreType(Foo)":
            // Swift has no such case, so check the payload.
            try payload(#""Foo""#).checkIsCoreType()
        case "publishIoValue JSON value on raw source": _ = try IoValueEvent.with(ioSource: ioSource(true), value: 1)
        case "publishIoValue Buffer on JSON source":
            _ = try IoValueEvent.with(ioSource: ioSource(false), value: [1] as [UInt8])
        default: Issue.record("unknown: \(note)")
        }
    }

    private func query(_ conditions: String) throws {
        _ = try QueryEvent(payload: payload(#"{"objectTypes":["a"],"objectFilter":{"conditions":\#(conditions)}}"#))
    }
}

extension Payload {
    fileprivate func checkIsCoreType() throws { try ValueRule.coreType.check(json) }
}
