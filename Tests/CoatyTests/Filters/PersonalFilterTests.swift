import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Filters that a person writes in a request: how they are sent, and how they are refused with a pointer.
@Suite(.exclusive) struct PersonalFilterTests {
    private func payload(_ text: String) throws -> Payload { try Payload(Array(text.utf8)) }

    private func text(_ payload: Payload) -> String { String(decoding: payload.bytes, as: UTF8.self) }

    @Test(arguments: [
        (
            #"{"objectTypes":["t"], "objectFilter" : {"conditions":["a.b", [ "Equals" ,1.50]] , "take":1e0}, "x":"Equals"}"#,
            #"{"objectTypes":["t"], "objectFilter" : {"conditions":["a.b", [ 7 ,1.50]] , "take":1e0}, "x":"Equals"}"#
        ),
        (
            #"{"coreTypes":["Task"],"objectFilter":{"conditions":{"or":[["a",["Like","Like"]],["Like",[6,"In"]],[["a"],["\u0049n",["In"]]]]}}}"#,
            #"{"coreTypes":["Task"],"objectFilter":{"conditions":{"or":[["a",[6,"Like"]],["Like",[6,"In"]],[["a"],[13,["In"]]]]}}}"#
        ),
        (
            #"{"objectFilter":{"conditions":["a",["Exists"]]},"objectTypes":["t"],"objectFilter":{"conditions":["a",["Exists"]]}}"#,
            #"{"objectFilter":{"conditions":["a",["Exists"]]},"objectTypes":["t"],"objectFilter":{"conditions":["a",[9]]}}"#
        ),
    ])
    func operatorNamesAreSentAsNumbers(_ written: String, _ expected: String) throws {
        #expect(try text(QueryEvent(personal: payload(written)).payload) == expected)
    }

    @Test(arguments: [
        #"{ "objectTypes":["t"],"objectFilter":{"conditions":["a",[7, "Equals"]],"skip":0.0} }"#,
        #"{"objectTypes":["t"],"objectFilter":{ },"objectJoinConditions":{"localProperty":"a","asProperty":"Equals"}}"#,
    ])
    func filtersWithoutNamesAreSentUnchanged(_ written: String) throws {
        #expect(try text(QueryEvent(personal: payload(written)).payload) == written)
    }

    @Test func aCallIsWrittenInTheSameWay() throws {
        let written = #"{"parameters":{"Equals":[1.0]},"filter":{"conditions":{"and":[["a",["Between",1.0,2]]]}}}"#
        let event = try CallEvent(operation: "o", personal: payload(written))
        let numbered = #"{"parameters":{"Equals":[1.0]},"filter":{"conditions":{"and":[["a",[4,1.0,2]]]}}}"#
        #expect(text(event.payload) == numbered)
        #expect(event.operation == "o")
        #expect(text(try CallEvent(operation: "o", personal: payload("{ }")).payload) == "{ }")
    }

    @Test(arguments: [
        (#"{"objectTypes":["t"],"objectFilter":{"conditions":["a",["equals",1]]}}"#, "/objectFilter/conditions/1/0"),
        (#"{"objectTypes":["t"],"objectFilter":{"conditions":{"not":["a",[9]]}}}"#, "/objectFilter/conditions/not"),
        (
            #"{"objectTypes":["t"],"objectFilter":{"conditions":{"and":[["a",[9]],{"or":[]}]}}}"#,
            "/objectFilter/conditions/and/1"
        ),
        (
            #"{"objectTypes":["t"],"objectFilter":{"orderByProperties":[["a","Up"]]}}"#,
            "/objectFilter/orderByProperties/0/1"
        ),
        (#"{"objectTypes":["t"],"objectFilter":{"condition":["a",[9]]}}"#, "/objectFilter/condition"),
        (#"{"objectTypes":["t"],"objectFilter":{"conditions":{"AND":[["a",[9]]]}}}"#, "/objectFilter/conditions/AND"),
        (#"{"objectTypes":["t"],"objectFilter":{"conditions":{}}}"#, "/objectFilter/conditions"),
        (#"{"objectTypes":["t"],"objectFilter":{"conditions":{"or":[],"an/d":[]}}}"#, "/objectFilter/conditions/an~1d"),
        (#"{"objectTypes":["t"],"objectFilter":{"conditions":{"and":[],"or":[]}}}"#, "/objectFilter/conditions/or"),
        (#"{"objectTypes":["t"],"objectFilter":{"conditions":["a",["Equals"]]}}"#, "/objectFilter/conditions/1"),
        (
            #"{"objectTypes":["t"],"objectFilter":{"conditions":{"or":[["a",[9,1]]]}}}"#,
            "/objectFilter/conditions/or/0/1"
        ),
    ])
    func errorsHaveAPointer(_ written: String, _ pointer: String) throws {
        let error = try #require(throws: PayloadError.self) { try QueryEvent(personal: payload(written)) }
        guard case .invalid(pointer, _) = error else {
            Issue.record("\(error)")
            return
        }
    }

    /// Otherwise, all agents would execute a call that was meant for some.
    @Test(arguments: [
        (#"{"condition":["a",["Equals",1]]}"#, "/filter/condition"),
        (#"{"conditions":["a",["Exists"]],"take":1}"#, "/filter/take"),
        (#"{"conditions":{"AND":[["a",["Equals",1]]]}}"#, "/filter/conditions/AND"),
        (#"{"conditions":{"and":[["a",["Between",1]]]}}"#, "/filter/conditions/and/0/1"),
    ])
    func callWithInvalidFilterIsNotSent(_ filter: String, _ pointer: String) throws {
        let call = try payload(#"{"filter":\#(filter)}"#)
        let error = try #require(throws: PayloadError.self) { try CallEvent(operation: "o", personal: call) }
        guard case .invalid(pointer, _) = error else {
            Issue.record("\(error)")
            return
        }
        // Agents accept it, like the reference.
        #expect(throws: Never.self) {
            try CallEvent(operation: "o", payload: payload(#"{"filter":{"conditions":{"AND":[]},"x":1}}"#))
        }
    }

    @Test func viewsAreSelectedLikeObjects() throws {
        let body = try payload(
            #"{"filter":{"conditions":["n",["GreaterThan",1]],"orderByProperties":[["n","Desc"]],"skip":1,"take":2},"of":[{"n":1},{"n":5},{"n":2},{"n":3},{"n":4},{}]}"#
        ).json
        let filter = try ObjectFilter(#require(body["filter"]), .person)
        let selected = filter.select(from: try #require(body["of"]).elements) { $0 }
        #expect(selected.map { $0["n"]?.number } == [4, 3])
        let broken = try payload(#"{"filter":{"take":"1"}}"#).json
        #expect(throws: PayloadError.invalid(pointer: "/filter/take", reason: "must be a number")) {
            try ObjectFilter(#require(broken["filter"]), .person)
        }
    }

    @Test func conditionErrorInABodyHasAPointer() throws {
        let body = try payload(#"{"until":{"or":[["a",["Exists"]],["b",[99]]]},"or":["a",["Exists"]]}"#).json
        let error = try #require(throws: PayloadError.self) { try ObjectFilterCondition(#require(body["until"])) }
        #expect(error.description.hasSuffix(#"at "/until/or/1/1/0""#))
        #expect(try ObjectFilterCondition(#require(body["or"])).matches(payload(#"{"a":null}"#).json))
    }

    @Test func answersAsAnotherAgent() async throws {
        let broker = TopicBroker()
        let agents = try ["asking", "observing", "other"].map { name in
            try CommunicationManager(
                identity: Identity(name: name),
                options: CommunicationOptions { _ in TopicBinding(broker: broker) }
            )
        }
        let other = agents[2]
        let observing = try agents[1].subscribe(.call(operation: "o")) { event in
            do {
                _ = try event.answered(by: other).answer(.with(result: 1))
            } catch {
                Issue.record(error)
            }
        }
        for agent in agents { agent.start() }
        _ = try await broker.waitForMessages(agents.count)
        let sourceId = try await withPatience {
            for await answer in try agents[0].publishCall(.with(operation: "o")) { return answer.sourceId }
            return nil
        }
        #expect(sourceId == other.identityId)
        observing.cancel()
        for agent in agents { await agent.stop() }
    }
}
